package tree

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"moontide/trace"
	"moontide/trace/stats"
)

// TreeDrawing is a trace that is being drawn from a [Tree], row by row. It is
// not safe for concurrent use, but any number may draw from one tree.
type TreeDrawing struct {
	model *shapedTree
	n     int // requests to be drawn
	read  int // of them

	arrivals, walk, copies, uniqueLengths, tailLengths, outputLengths *rand.Rand

	now      float64 // nanoseconds before the speed-up: whole, so that sums are exact up to 2^53 (104 days)
	due      int     // requests still to come at now
	fresh    uint64  // the next id that no block has
	rejected int

	at prompt // of the request at hand
}

// prompt is where a walk led.
type prompt struct {
	copy   uint64
	path   []int // core nodes
	shared int   // their blocks
	unique int   // blocks of its own
	tail   int   // tokens of the last block
}

// Draw prepares n requests, at least 1, in order of arrival: the first at 0,
// unless it was rejected. Their ids are chained to their prefix: those from 0
// are the core's, one copy after the other; those after them are given out one
// by one to unique prompts, each once. Requests have context_len, the tokens of
// their core blocks, and unique_user_prompt_len, the rest of the ISL.
//
// The rows depend on the tree, the seed and the shape alone: a smaller n is the
// beginning of a larger, and a shape that changes one aspect leaves the others
// as they were. They take no more memory than the request at hand.
//
// A shape that cannot be is a [*KnobError], found before anything is drawn: a
// value out of range, limits that contradict each other or the lengths that the
// tree has, limits that fewer than one request in 10,000 fits, lengths, ids or
// times that a trace cannot say.
func (t *Tree) Draw(seed uint64, n int, shape TreeShape) (*TreeDrawing, error) {
	m, err := t.shaped(shape, n)
	if err != nil {
		return nil, fmt.Errorf("drawing by the tree method: %w", err)
	}
	d := &TreeDrawing{
		model:         m,
		n:             n,
		arrivals:      stats.NewStream(seed, "arrivals"),
		walk:          stats.NewStream(seed, "walk"),
		copies:        stats.NewStream(seed, "copies"),
		uniqueLengths: stats.NewStream(seed, "unique lengths"),
		tailLengths:   stats.NewStream(seed, "tail lengths"),
		outputLengths: stats.NewStream(seed, "output lengths"),
		fresh:         m.core * uint64(m.shape.PrefixRootMultiplier),
	}
	d.due = m.together.Draw(d.arrivals)
	return d, nil
}

// Read draws the next request into r, reusing the array of r.HashIDs, or
// returns io.EOF when all have been drawn. So a caller that keeps a request must
// copy its ids; [TreeDrawing.Requests] does.
func (d *TreeDrawing) Read(r *trace.Request) error {
	if d.read == d.n {
		return io.EOF
	}
	d.read++
	osl := d.next()
	for !d.fits() {
		d.rejected++
		osl = d.next()
	}
	if d.model.shape.KeepRate {
		d.arrive()
	}
	at := d.timestamp()
	if at > latest {
		return fmt.Errorf("drawing by the tree method: a request arrives after %.3g ms; %g are allowed", at, latest)
	}
	context := d.at.shared * d.model.size.Tokens
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

// Requests draws the requests that are left. It can be ranged over once.
func (d *TreeDrawing) Requests() trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		for {
			var r trace.Request // with an array of its own
			err := d.Read(&r)
			if err == io.EOF {
				return
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Rejected returns how many requests have been drawn so far, beside those that
// were read, that MinISL and MaxISL kept out.
func (d *TreeDrawing) Rejected() int { return d.rejected }

// Rate returns how many requests a second were read so far, from time 0 to the
// last; 0 while no time has passed.
func (d *TreeDrawing) Rate() float64 {
	if d.now == 0 {
		return 0
	}
	return float64(d.read) / d.timestamp() * 1000
}

// timestamp is the arrival of the request at hand in milliseconds.
func (d *TreeDrawing) timestamp() float64 { return d.now / nsPerMs / d.model.shape.SpeedupRatio }

// next draws a request, except for its ids, and returns its output length.
// Every request takes the same draws of each aspect, needed or not, so that
// what it gets does not depend on what became of those before it.
func (d *TreeDrawing) next() (osl int) {
	m := d.model
	if !m.shape.KeepRate {
		d.arrive()
	}
	way := d.descend()
	d.at.copy = d.copies.Uint64N(uint64(m.shape.PrefixRootMultiplier))
	d.at.unique, d.at.tail = m.unique.Draw(d.uniqueLengths), m.tails.Draw(d.tailLengths)
	switch way {
	case toBlock:
		d.at.unique = 1
	case toEnd:
		d.at.unique, d.at.tail = 0, m.size.Tokens // the core has whole blocks
	}
	return m.outputs.Draw(d.outputLengths)
}

func (d *TreeDrawing) isl() int {
	return (d.at.shared+d.at.unique-1)*d.model.size.Tokens + d.at.tail
}

func (d *TreeDrawing) fits() bool {
	s, isl := &d.model.shape, d.isl()
	return isl >= s.MinISL && (s.MaxISL == 0 || isl <= s.MaxISL)
}

// arrive lets time pass until the next request. A source that had only one
// timestamp has no steps, and time stands still.
func (d *TreeDrawing) arrive() {
	if d.due == 0 {
		d.now += float64(d.model.steps.Draw(d.arrivals))
		d.due = d.model.together.Draw(d.arrivals)
	}
	d.due--
}

// descend walks the core from its root and returns the way that leads out.
func (d *TreeDrawing) descend() (way int) {
	nodes := d.model.nodes
	d.at.path, d.at.shared = d.at.path[:0], 0
	for at := 0; ; at = way {
		if way = nodes[at].ways.Draw(d.walk); way < 0 {
			return way
		}
		d.at.path = append(d.at.path, way)
		d.at.shared += nodes[way].blocks
	}
}

// appendIDs appends the ids of the request at hand, from one of the copies of
// the core and from those that no block has.
func (d *TreeDrawing) appendIDs(ids []uint64) []uint64 {
	m := d.model
	blocks := d.at.shared + d.at.unique
	if ids = slices.Grow(ids, blocks); ids == nil {
		ids = []uint64{}
	}
	first := m.core * d.at.copy
	for _, i := range d.at.path {
		ids = appendRun(ids, first+m.nodes[i].first, m.nodes[i].blocks)
	}
	ids = appendRun(ids, d.fresh, d.at.unique)
	d.fresh += uint64(d.at.unique)
	return ids
}

// appendRun appends consecutive ids.
func appendRun(ids []uint64, first uint64, blocks int) []uint64 {
	for i := range uint64(blocks) {
		ids = append(ids, first+i)
	}
	return ids
}
