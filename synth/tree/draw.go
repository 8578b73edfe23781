package tree

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"moontide/synth"
	"moontide/trace"
	"moontide/trace/stats"
)

// Drawing draws the requests of a trace one by one. It is not safe for
// concurrent use, but several drawings of one model are.
type Drawing struct {
	model     *shapedModel
	remaining int
	read      int

	arrivals, walk, copies, uniqueLengths, tailLengths, outputLengths *rand.Rand

	now      float64 // nanoseconds before the speed-up; whole, so that sums are exact up to 2^53 (104 days)
	due      int     // requests left at the current time
	fresh    uint64  // next unused block id
	rejected int

	prompt prompt // of the current request
}

// prompt is the result of a walk down the core.
type prompt struct {
	copy   uint64
	path   []int // core nodes
	shared int   // blocks of these nodes
	unique int   // unique blocks
	tail   int   // tokens of the last block
}

// Draw prepares n requests, at least 1, in order of arrival; the first arrives
// at 0 unless it was rejected. Block ids are chained to their prefix, those of the
// core first. Requests have context_len, the tokens of their core blocks, and
// unique_user_prompt_len, the rest of the ISL.
//
// The rows depend only on the model, the seed and the shape: a smaller n gives
// a prefix of a larger one. Memory does not grow with n.
//
// A shape that cannot be drawn is a [*ShapeError]: a value out of range, limits
// that contradict each other or fit none of 10,000 requests, or lengths, ids or
// times that exceed what a trace can hold.
func (m *Model) Draw(seed uint64, n int, shape Shape) (*Drawing, error) {
	shaped, err := m.shaped(shape, seed, n)
	if err != nil {
		return nil, fmt.Errorf("drawing by the tree method: %w", err)
	}
	return shaped.drawing(seed, n), nil
}

func (m *shapedModel) drawing(seed uint64, n int) *Drawing {
	d := &Drawing{
		model:         m,
		remaining:     n,
		arrivals:      stats.NewStream(seed, "arrivals"),
		walk:          stats.NewStream(seed, "walk"),
		copies:        stats.NewStream(seed, "copies"),
		uniqueLengths: stats.NewStream(seed, "unique lengths"),
		tailLengths:   stats.NewStream(seed, "tail lengths"),
		outputLengths: stats.NewStream(seed, "output lengths"),
		fresh:         m.coreBlocks * uint64(m.shape.PrefixRootMultiplier),
	}
	d.due = m.groups.Draw(d.arrivals)
	return d
}

// Read draws the next request into r, or returns io.EOF after the last. It
// reuses the array of r.HashIDs, so callers that retain a request must copy its
// ids, as [Drawing.Requests] does.
func (d *Drawing) Read(r *trace.Request) error {
	if d.remaining == 0 {
		return io.EOF
	}
	d.remaining--
	d.read++
	osl := d.next()
	for tried := 1; !d.fits(); tried++ {
		if tried == 100*maxTried {
			return fmt.Errorf("drawing by the tree method: %d requests in a row do not fit MinISL %d and MaxISL %d", tried, d.model.shape.MinISL, d.model.shape.MaxISL)
		}
		d.rejected++
		osl = d.next()
	}
	if err := d.checkISL(); err != nil {
		return fmt.Errorf("drawing by the tree method: %w", err)
	}
	if d.model.shape.KeepRate {
		d.arrive()
	}
	at := d.timestamp()
	if at > maxTime {
		return fmt.Errorf("drawing by the tree method: a request arrives after %.3g ms; at most %g are allowed", at, maxTime)
	}
	context := d.prompt.shared * d.model.size.Tokens
	*r = trace.Request{
		Timestamp:       trace.Some(at),
		InputLength:     d.isl(),
		OutputLength:    osl,
		HashIDs:         d.appendIDs(r.HashIDs[:0]),
		ContextLen:      trace.Some(context),
		UniquePromptLen: trace.Some(d.isl() - context),
	}
	return nil
}

// Requests draws the remaining requests. It can be ranged over once.
func (d *Drawing) Requests() trace.Requests { return trace.FromRows(d) }

// Rejected returns how many requests MinISL and MaxISL have rejected so far.
func (d *Drawing) Rejected() int { return d.rejected }

// Rate returns the requests per second read so far, from time 0 to the last, or
// 0 if no time has passed.
func (d *Drawing) Rate() float64 {
	if d.now == 0 {
		return 0
	}
	return float64(d.read) / d.timestamp() * 1000
}

// timestamp returns the arrival of the current request in milliseconds.
func (d *Drawing) timestamp() float64 { return d.now / nsPerMs / d.model.shape.SpeedupRatio }

// next draws a request without its ids and returns its output length. Every
// request takes the same number of draws from each stream, needed or not, so
// its values do not depend on earlier requests.
func (d *Drawing) next() (osl int) {
	m, p := d.model, &d.prompt
	if !m.shape.KeepRate {
		d.arrive()
	}
	exit := d.descend()
	p.copy = d.copies.Uint64N(uint64(m.shape.PrefixRootMultiplier))
	p.unique, p.tail = m.unique.Draw(d.uniqueLengths), m.tails.Draw(d.tailLengths)
	switch exit {
	case exitOneBlock:
		p.unique = 1
	case exitEnd:
		p.unique, p.tail = 0, m.size.Tokens // the core consists of whole blocks
	}
	return m.outputs.Draw(d.outputLengths)
}

func (d *Drawing) isl() int {
	return (d.prompt.shared+d.prompt.unique-1)*d.model.size.Tokens + d.prompt.tail
}

func (d *Drawing) fits() bool {
	s, isl := &d.model.shape, d.isl()
	return isl >= s.MinISL && (s.MaxISL == 0 || isl <= s.MaxISL)
}

// arrive advances the time to the next request. A source with a single
// timestamp has no gaps, so time does not advance.
func (d *Drawing) arrive() {
	if d.due == 0 {
		d.now += float64(d.model.gaps.Draw(d.arrivals))
		d.due = d.model.groups.Draw(d.arrivals)
	}
	d.due--
}

// descend walks down the core and returns the exit taken.
func (d *Drawing) descend() (exit int) {
	nodes, p := d.model.nodes, &d.prompt
	p.path, p.shared = p.path[:0], 0
	for at := 0; ; {
		if at = nodes[at].next.Draw(d.walk); at < 0 {
			return at
		}
		p.path = append(p.path, at)
		p.shared += nodes[at].blocks
	}
}

// appendIDs appends the ids of the current request: those of its copy of the
// core, then unused ones.
func (d *Drawing) appendIDs(ids []uint64) []uint64 {
	m, p := d.model, &d.prompt
	if ids = slices.Grow(ids, p.shared+p.unique); ids == nil {
		ids = []uint64{}
	}
	first := m.coreBlocks * p.copy
	for _, i := range p.path {
		run := synth.BlockRun{First: first + m.nodes[i].first, Blocks: m.nodes[i].blocks}
		ids = run.AppendIDs(ids)
	}
	ids = synth.BlockRun{First: d.fresh, Blocks: p.unique}.AppendIDs(ids)
	d.fresh += uint64(p.unique)
	return ids
}
