package spec

import (
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"

	"moontide/synth"
	"moontide/trace"
	"moontide/trace/stats"
)

// maxTime is the latest arrival in seconds that a trace can hold.
const maxTime = 1e12

// Requests draws the trace in order of arrival. A later turn with a delay instead
// of a timestamp is placed by the assumed response time.
//
// The stream can be ranged over repeatedly and concurrently, and yields the
// same requests each time. It keeps the shared prefixes and the open sessions
// in memory. Its only error is an arrival later than a trace can hold.
func (s *Spec) Requests() trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		trace.FromRows(s.Draw())(yield)
	}
}

// Drawing is one pass through a spec. It is not safe for concurrent use.
type Drawing struct {
	*Spec
	drawn   int
	sources []liveSource
	pending synth.Queue[event]
	free    uint64 // next unused block id
	idle    []*session
}

// event is an arrival of a source or the next turn of a session.
type event struct {
	session *session
	source  int // if session is nil
}

type liveSource struct {
	clients    []*liveClient
	cumulative []float64 // shares of the clients, summed
	mix        stats.Indexed
	arrive     func() float64
	arrivals   int
}

// liveClient is a client with random numbers for each aspect.
type liveClient struct {
	*client
	started                                   int // sessions
	turns, think, prompts, responses, choices stats.Indexed
}

// session is an open conversation and its next prompt.
type session struct {
	client   *liveClient
	number   int
	turn     int // from 0
	turns    int
	isl, osl int
	delay    float64          // seconds after the assumed end of the previous turn
	prefix   int              // tokens of the shared prefix
	context  int              // blocks of the prompt that are shared
	runs     []synth.BlockRun // these blocks, including those of earlier turns
}

// Draw draws the trace of [Spec.Requests] row by row into memory of the caller.
func (s *Spec) Draw() *Drawing {
	d := &Drawing{Spec: s, free: s.sharedIDs}
	for i, source := range s.sources {
		scale, cumulative := source.sessionScale()
		live := liveSource{
			cumulative: cumulative, mix: stats.NewIndexed(s.seed, source.name+" mix"),
			arrive: source.arrivals.start(s.seed, source.name, scale),
		}
		for _, c := range source.clients {
			live.clients = append(live.clients, s.start(c, ""))
		}
		d.sources = append(d.sources, live)
		d.pending.Push(live.arrive(), event{source: i})
	}
	return d
}

// start starts a client. Each run of a client has different random numbers.
func (s *Spec) start(c *client, run string) *liveClient {
	indexed := func(aspect string) stats.Indexed {
		return stats.NewIndexed(s.seed, run+aspect+" of client "+c.name)
	}
	return &liveClient{
		client: c,
		turns:  indexed("turns"), think: indexed("think time"), prompts: indexed("prompts"),
		responses: indexed("answers"), choices: indexed("shared"),
	}
}

// Read fills r with the next request, or returns io.EOF after the last. It
// reuses the array of r.HashIDs, so callers that retain a row must copy it.
func (d *Drawing) Read(r *trace.Request) error {
	if d.requests > 0 && d.drawn == d.requests {
		return io.EOF
	}
	if at, _ := d.pending.First(); math.IsInf(at, 1) || d.duration > 0 && at >= d.duration {
		return io.EOF
	}
	d.drawn++
	at, e := d.pending.Pop()
	if !(at <= maxTime) {
		return fmt.Errorf("drawing request %d: it arrives after %.3g s, more than %.3g: want a higher rate or fewer requests", d.drawn, at, float64(maxTime))
	}
	s := e.session
	if s == nil {
		source := &d.sources[e.source]
		s = d.startSession(source)
		d.pending.Push(source.arrive(), e)
	}
	d.fill(r, s, at)
	if d.advance(s) {
		d.pending.Push(at+s.client.sessions.responseTime(r.OutputLength)+s.delay, event{session: s})
	} else {
		d.idle = append(d.idle, s)
	}
	return nil
}

// startSession starts a session for one of a source's clients.
func (d *Drawing) startSession(source *liveSource) *session {
	which := 0
	if len(source.clients) > 1 {
		which = sort.SearchFloat64s(source.cumulative, source.mix.At(source.arrivals, 0))
	}
	source.arrivals++
	if len(d.idle) == 0 {
		d.idle = append(d.idle, &session{})
	}
	last := len(d.idle) - 1
	s := d.idle[last]
	d.idle = d.idle[:last]
	c := source.clients[which]
	s.begin(c, c.started)
	c.started++
	return s
}

// begin makes s a session of client c, with its first prompt.
func (s *session) begin(c *liveClient, number int) {
	*s = session{client: c, number: number, runs: s.runs[:0]}
	s.turns = int(c.sessions.turns.Quantile(c.turns.At(number, 0)))
	if c.prefixes != nil {
		s.runs, s.prefix = c.prefixes.choose(s.runs, func(level int) float64 { return c.choices.At(number, level) })
	}
	for _, r := range s.runs {
		s.context += r.Blocks
	}
	s.drawLengths()
}

// fill fills in the row of the session's turn. Blocks that are not shared get
// new ids.
func (d *Drawing) fill(r *trace.Request, s *session, at float64) {
	c := s.client
	*r = trace.Request{InputLength: s.isl, OutputLength: s.osl, HashIDs: r.HashIDs[:0]}
	if c.sessions.several {
		r.SessionID = c.sessionID(s.number)
	}
	if s.turn == 0 || c.sessions.timestamps {
		r.Timestamp = trace.Some(milliseconds(at))
	} else {
		r.Delay = trace.Some(milliseconds(s.delay))
	}
	if d.declares {
		context := s.context * d.blockSize
		r.ContextLen, r.UniquePromptLen = trace.Some(context), trace.Some(s.isl-context)
	}
	blocks := (s.isl + d.blockSize - 1) / d.blockSize
	own := synth.BlockRun{First: d.free, Blocks: blocks - s.context}
	d.free += uint64(own.Blocks)
	s.runs = appendRun(s.runs, own)
	if cap(r.HashIDs) < blocks {
		r.HashIDs = make([]uint64, 0, max(blocks, 64))
	}
	for _, run := range s.runs {
		r.HashIDs = run.AppendIDs(r.HashIDs)
	}
}

// advance moves a session to its next turn and reports whether there is one.
// Only whole blocks are shared with it: the last block of the prompt continues
// differently and gets a new id.
func (d *Drawing) advance(s *session) bool {
	c := s.client
	if s.turn++; s.turn >= s.turns {
		return false
	}
	s.context = s.isl / d.blockSize
	if last := len(s.runs) - 1; s.isl%d.blockSize != 0 {
		s.runs[last].Blocks--
	}
	if !s.drawNext() {
		return false
	}
	s.delay = c.sessions.think.Quantile(c.think.At(s.number, s.turn))
	return true
}

// drawLengths draws the turn's lengths. A prompt has new tokens after the shared prefix or,
// in a later turn, after the previous prompt and its response.
func (s *session) drawLengths() {
	c := s.client
	p, q := c.prompts.At(s.number, s.turn), c.responses.At(s.number, s.turn)
	before := s.prefix
	if s.turn > 0 {
		before = s.isl + s.osl
	}
	switch {
	case s.turn > 0 && c.sessions.newTokens != nil:
		s.isl = before + int(c.sessions.newTokens.Quantile(p))
	case c.unique:
		s.isl = before + int(c.isl.Quantile(p))
	default:
		s.isl = before + int(c.isl.Quantile(p)) - s.prefix
	}
	s.osl = int(c.osl.Quantile(stats.Correlate(p, q, c.correlation)))
}

// drawNext draws the lengths of a later turn and reports whether its prompt fits.
func (s *session) drawNext() bool {
	s.drawLengths()
	return s.isl <= s.client.sessions.maxISL
}

func (c *liveClient) sessionID(number int) string {
	if c.name == "" {
		return "s" + strconv.Itoa(number)
	}
	return c.name + "-" + strconv.Itoa(number)
}

// milliseconds rounds to a microsecond.
func milliseconds(seconds float64) float64 { return math.Round(seconds*1e6) / 1e3 }
