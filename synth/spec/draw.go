package spec

import (
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"

	"moontide/trace"
	"moontide/trace/stats"
)

// maxTime bounds arrivals in seconds: what a trace can hold.
const maxTime = 1e12

// Requests draws the trace, in order of arrival: as many requests as the
// description asks for, or as arrive before its duration ends. A later turn
// that has a delay instead of a timestamp stands where the assumed answer time
// puts it.
//
// The stream can be ranged over repeatedly, also at once, and yields the same
// each time. It holds the shared prefixes and the sessions that are not over.
// Its only error is an arrival later than a trace can say.
func (d *Spec) Requests() trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		var row trace.Request
		var slab []uint64 // from which rows cut their ids
		for drawing := d.Draw(); ; {
			err := drawing.Read(&row)
			if err == io.EOF {
				return
			}
			r, n := row, len(row.HashIDs)
			if n > len(slab) {
				slab = make([]uint64, max(n, 4096))
			}
			r.HashIDs, slab = slab[:n:n], slab[n:]
			copy(r.HashIDs, row.HashIDs)
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Drawing is one run through a description: everything that is alive at a
// moment. It has one owner.
type Drawing struct {
	*Spec
	drawn   int
	sources []liveSource
	pending queue
	fresh   uint64 // the next id that no block has
	idle    []*session
}

// liveSource is a source at a moment.
type liveSource struct {
	clients  []*liveClient
	weights  []float64
	mix      stats.Indexed
	arrive   func() float64
	arrivals int
}

// liveClient is a client at a moment, with the random numbers of each aspect.
type liveClient struct {
	*client
	started                                 int // sessions
	turns, think, prompts, answers, choices stats.Indexed
}

// session is a conversation at a moment: the prompt that comes next.
type session struct {
	client   *liveClient
	number   int
	turn     int // from 0
	turns    int
	isl, osl int
	delay    float64 // seconds from the assumed end of the turn before
	prefix   int     // tokens of its shared prefix
	context  int     // blocks that it shares
	runs     []run   // these blocks, and its own of earlier turns
}

// Draw begins to draw the trace of [Spec.Requests], row by row into the
// caller's memory.
func (d *Spec) Draw() *Drawing {
	drawing := &Drawing{Spec: d, fresh: d.sharedIDs}
	for i, s := range d.sources {
		scale, weights := s.scale()
		live := liveSource{weights: weights, mix: stats.NewIndexed(d.seed, s.name+" mix"), arrive: s.arrivals.start(d.seed, s.name, scale)}
		for _, c := range s.clients {
			live.clients = append(live.clients, d.live(c, ""))
		}
		drawing.sources = append(drawing.sources, live)
		drawing.pending.push(event{at: live.arrive(), source: i})
	}
	return drawing
}

// live begins a client. Another run of the same has other random numbers.
func (d *Spec) live(c *client, run string) *liveClient {
	places := func(aspect string) stats.Indexed { return stats.NewIndexed(d.seed, run+aspect+" of client "+c.name) }
	return &liveClient{
		client: c,
		turns:  places("turns"), think: places("think time"), prompts: places("prompts"),
		answers: places("answers"), choices: places("shared"),
	}
}

// Read fills r with the next request, or returns io.EOF. It reuses the array of
// r.HashIDs: whoever keeps a row copies it.
func (d *Drawing) Read(r *trace.Request) error {
	if d.requests > 0 && d.drawn == d.requests {
		return io.EOF
	}
	e := d.pending.pop()
	if math.IsInf(e.at, 1) || d.duration > 0 && e.at >= d.duration {
		d.pending.push(e) // it stays the end
		return io.EOF
	}
	d.drawn++
	if !(e.at <= maxTime) {
		return fmt.Errorf("drawing request %d: it arrives after %.3g s, the most is %.3g: want a higher rate or fewer requests", d.drawn, e.at, float64(maxTime))
	}
	d.take(e, r)
	return nil
}

// take makes the request of an event and schedules what follows from it.
func (d *Drawing) take(e event, r *trace.Request) {
	s := e.session
	if s == nil {
		source := &d.sources[e.source]
		s = d.start(source)
		d.pending.push(event{at: source.arrive(), source: e.source})
	}
	d.fill(r, s, e.at)
	if d.advance(s) {
		d.pending.push(event{at: e.at + s.client.sessions.answer(r.OutputLength) + s.delay, session: s})
	} else {
		d.idle = append(d.idle, s)
	}
}

// start begins a session of one of a source's clients.
func (d *Drawing) start(source *liveSource) *session {
	which := 0
	if len(source.clients) > 1 {
		which = sort.SearchFloat64s(source.weights, source.mix.At(source.arrivals, 0))
	}
	source.arrivals++
	c := source.clients[which]
	s := d.newSession()
	s.begin(c, c.started)
	c.started++
	return s
}

// begin makes s a session of a client, with its first prompt.
func (s *session) begin(c *liveClient, number int) {
	*s = session{client: c, number: number, runs: s.runs[:0]}
	s.turns = int(c.sessions.turns.Quantile(c.turns.At(s.number, 0)))
	if c.prefixes != nil {
		s.runs, s.prefix = c.prefixes.choose(s.runs, func(level int) float64 { return c.choices.At(s.number, level) })
	}
	for _, r := range s.runs {
		s.context += r.blocks
	}
	s.say(s.prefix)
}

func (d *Drawing) newSession() *session {
	last := len(d.idle) - 1
	if last < 0 {
		return &session{}
	}
	s := d.idle[last]
	d.idle = d.idle[:last]
	return s
}

// fill makes a row of the session's turn. The blocks that are not shared get
// ids of their own.
func (d *Drawing) fill(r *trace.Request, s *session, at float64) {
	c := s.client
	*r = trace.Request{InputLength: s.isl, OutputLength: s.osl, HashIDs: r.HashIDs[:0]}
	if c.sessions.several {
		r.SessionID = c.sessionID(s.number)
	}
	if s.turn == 0 || c.sessions.open {
		r.Timestamp = trace.Some(milliseconds(at))
	} else {
		r.Delay = trace.Some(milliseconds(s.delay))
	}
	if d.declares {
		context := s.context * d.blockSize
		r.ContextLen, r.UniquePromptLen = trace.Some(context), trace.Some(s.isl-context)
	}
	blocks := (s.isl + d.blockSize - 1) / d.blockSize
	own := run{d.fresh, blocks - s.context}
	d.fresh += uint64(own.blocks)
	s.runs = appendRun(s.runs, own)
	if cap(r.HashIDs) < blocks {
		r.HashIDs = make([]uint64, 0, max(blocks, 64))
	}
	for _, run := range s.runs {
		for i := range uint64(run.blocks) {
			r.HashIDs = append(r.HashIDs, run.first+i)
		}
	}
}

// advance moves a session on to its next turn, if it has one: the prompt so
// far, its answer, and new tokens. Only whole blocks are shared with it; the
// last block of the prompt goes on differently, and so gets another id.
func (d *Drawing) advance(s *session) bool {
	c := s.client
	if s.turn++; s.turn >= s.turns {
		return false
	}
	s.context = s.isl / d.blockSize
	if last := len(s.runs) - 1; s.isl%d.blockSize != 0 {
		s.runs[last].blocks--
	}
	if !s.goOn() {
		return false
	}
	s.delay = c.sessions.think.Quantile(c.think.At(s.number, s.turn))
	return true
}

// goOn makes the prompt of a later turn, and reports whether it fits.
func (s *session) goOn() bool {
	s.say(s.isl + s.osl)
	return s.isl <= s.client.sessions.maxISL
}

// say makes the turn's prompt of so many tokens from before and new ones.
func (s *session) say(before int) {
	c := s.client
	fresh, osl := c.draw(s.turn == 0, s.prefix, c.prompts.At(s.number, s.turn), c.answers.At(s.number, s.turn))
	s.isl, s.osl = before+fresh, osl
}

func (c *liveClient) sessionID(number int) string {
	if c.name == "" {
		return "s" + strconv.Itoa(number)
	}
	return c.name + "-" + strconv.Itoa(number)
}

// milliseconds rounds to a microsecond.
func milliseconds(seconds float64) float64 { return math.Round(seconds*1e6) / 1e3 }
