// Package virtual replays a trace against simulated engines in virtual time,
// without a client or a network. The engines are those of
// [moontide/replay/sim/engine] and get the same prompts as over HTTP from
// [moontide/replay/sim/server].
//
// Start with [New], and use the endpoint as the Model of a
// [replay.VirtualRunner].
package virtual

import (
	"fmt"
	"sync/atomic"
	"time"

	"moontide/replay"
	"moontide/replay/sim/engine"
	"moontide/replay/transcript"
	"moontide/trace"
	"moontide/trace/block"
)

// Endpoint is a [replay.Model]. It is not safe for concurrent use.
type Endpoint struct {
	cluster *engine.Cluster
	cfg     Config
	book    *transcript.Book[struct{}] // nil without live answers
	events  []engine.Event
	answers []replay.Record
	refused []replay.Record // returned by the next Advance
	patient []*flight       // in the order in which they are given up; some have ended
	now     time.Duration
}

// Config configures an [Endpoint].
type Config struct {
	Deployment engine.Deployment
	// TraceBlockSize is the block size of the trace in tokens; 0 is
	// [block.DefaultSize].
	TraceBlockSize int
	// CacheGenerated makes the engines cache generated tokens too. Later prompts hit
	// them with LiveAnswers only.
	CacheGenerated bool
	// LiveAnswers makes prompts continue the answers to earlier turns, as package
	// transcript describes. An answer has the tokens that the trace says, but at least
	// one.
	LiveAnswers bool
	Graph       *trace.Graph // of the trace, for LiveAnswers
	// Coarse leaves out the times of tokens between the first and the last, which makes
	// long answers cheap: see [engine.Deployment.NewCoarse]. The other times stay the
	// same, except the last token of an abandoned answer.
	Coarse bool
	// Prompts, if not nil, are those of the trace in blocks of the engines' size.
	// LiveAnswers does not use them.
	Prompts *Prompts
	// CancelAfter is how long after it was sent a request is abandoned unless its answer
	// is complete; 0 is never.
	CancelAfter time.Duration
}

// New returns an endpoint at time 0.
func New(cfg Config) (*Endpoint, error) {
	create := cfg.Deployment.New
	if cfg.Coarse {
		create = cfg.Deployment.NewCoarse
	}
	cluster, err := create()
	if err != nil {
		return nil, err
	}
	if cfg.TraceBlockSize <= 0 {
		cfg.TraceBlockSize = block.DefaultSize
	}
	e := &Endpoint{cluster: cluster, cfg: cfg}
	if cfg.LiveAnswers {
		e.book = transcript.NewBook[struct{}](cfg.Graph, cfg.TraceBlockSize, 0)
	}
	return e, nil
}

// flight is a request in flight.
type flight struct {
	engine.Request
	row         int
	base        replay.Base
	until       time.Duration // when the client leaves
	first, last time.Duration
	gaps        []time.Duration
}

// The statuses of these requests over HTTP.
const (
	statusOK         = 200
	statusBadRequest = 400
)

// Submit submits a row. The answer has the row's OSL, but at least one token.
func (e *Endpoint) Submit(now time.Duration, row int, r trace.Request) {
	osl := max(r.OutputLength, 1)
	e.now = now
	f := &flight{row: row, until: now + e.cfg.CancelAfter}
	// Check first, because a prompt takes memory proportional to its length.
	err := e.cluster.Fits(r.InputLength, osl)
	if err == nil || e.book != nil {
		f.Prompt, f.base = e.promptOf(row, r, err == nil)
	}
	if err == nil {
		f.Output, f.Session, f.Owner = osl, r.SessionID, f
		err = e.cluster.Submit(now, &f.Request)
	}
	switch {
	case err != nil:
		e.refuse(f, err)
	case e.cfg.CancelAfter > 0:
		e.patient = append(e.patient, f)
	}
}

// promptOf returns the prompt of a row in the engines' blocks if it is served, and what
// it continues.
func (e *Endpoint) promptOf(row int, r trace.Request, served bool) (p *engine.Prompt, base replay.Base) {
	generated := 0
	if e.cfg.CacheGenerated {
		generated = max(r.OutputLength, 1) - 1 // the last token is never cached
	}
	inBlocks := func(content *transcript.Prompt) *engine.Prompt {
		return engine.TracePrompt(content, generated, e.cluster.BlockSize())
	}
	if e.book == nil {
		return e.cfg.Prompts.of(row, func() *engine.Prompt { return inBlocks(transcript.New(r, row, e.cfg.TraceBlockSize)) }), base
	}
	entry := e.book.Open(r, row)
	if entry.Base != nil {
		base = replay.Base{Row: trace.Some(entry.Base.Prompt.Row), Answer: entry.Base.Generated}
	}
	if served {
		p = inBlocks(entry.Prompt)
	}
	return p, base
}

// refuse answers a row that can never be served.
func (e *Endpoint) refuse(f *flight, err error) {
	e.Forget(f.row)
	e.refused = append(e.refused, replay.Record{
		Row: f.row, Done: e.now, Base: f.base, Status: statusBadRequest, Class: replay.HTTPError,
		Error: fmt.Sprintf("status %d: %v", statusBadRequest, err),
	})
}

// Fits implements [replay.Fitter].
func (e *Endpoint) Fits(r trace.Request) bool {
	return e.cluster.Fits(r.InputLength, max(r.OutputLength, 1)) == nil
}

// Forget implements [replay.Forgetter].
func (e *Endpoint) Forget(row int) {
	if e.book != nil {
		e.book.Drop(row)
	}
}

// Next returns the time of the next event, and whether there is one.
func (e *Endpoint) Next() (at time.Duration, ok bool) {
	if len(e.refused) > 0 {
		return e.now, true
	}
	at, ok = e.cluster.Next()
	for len(e.patient) > 0 && e.patient[0].Ended() {
		e.patient = e.patient[1:]
	}
	if len(e.patient) > 0 && (!ok || e.patient[0].until < at) {
		return e.patient[0].until, true
	}
	return at, ok
}

// Advance advances the time and returns the answers completed until then. They
// are valid until the next call.
func (e *Endpoint) Advance(now time.Duration) []replay.Record {
	e.answers = append(e.answers[:0], e.refused...)
	e.refused = e.refused[:0]
	for len(e.patient) > 0 && e.patient[0].until <= now {
		f := e.patient[0]
		e.patient = e.patient[1:]
		if e.advanceTo(f.until); !f.Ended() {
			e.abandon(f)
		}
	}
	e.advanceTo(now)
	return e.answers
}

// advanceTo handles the engines' events until then.
func (e *Endpoint) advanceTo(at time.Duration) {
	e.events = e.cluster.Advance(at, e.events[:0])
	for _, event := range e.events {
		f := event.Request.Owner.(*flight)
		switch event.Kind {
		case engine.First:
			f.first, f.last = event.At, event.At
			if !e.cfg.Coarse {
				f.gaps = make([]time.Duration, 0, f.Output-1)
			}
		case engine.Token:
			f.gaps = append(f.gaps, event.At-f.last)
			f.last = event.At
		case engine.Finished:
			f.last = event.At
			if e.book != nil { // answers of size 0 are never too many
				_ = e.book.End(f.row, transcript.Generated{Tokens: f.Output}, struct{}{}, 0)
			}
			e.answers = append(e.answers, f.record(f.last))
		}
	}
}

// abandon ends a request whose client leaves.
func (e *Endpoint) abandon(f *flight) {
	e.cluster.Cancel(f.until, &f.Request)
	e.Forget(f.row)
	rec := f.record(f.until)
	rec.Class, rec.Error = replay.Abandoned, fmt.Sprintf("abandoned after %v", e.cfg.CancelAfter)
	rec.Counts = replay.Counts{} // servers report them at the end
	e.answers = append(e.answers, rec)
}

// record returns the record of a request that ends now, and gives up its gaps.
func (f *flight) record(done time.Duration) replay.Record {
	rec := replay.Record{Row: f.row, Done: done, Base: f.base, Status: statusOK}
	if f.Generated() > 0 {
		rec.First, rec.Last, rec.Gaps = trace.Some(f.first), trace.Some(f.last), f.gaps
		rec.Chunks = f.Generated() // Coarse leaves out the gaps
		rec.Counts = replay.Counts{Input: trace.Some(f.Prompt.Len()), Output: trace.Some(f.Generated()), Cached: trace.Some(f.Cached())}
	}
	f.gaps = nil
	return rec
}

// Stats returns the state of the engines.
func (e *Endpoint) Stats() engine.Stats { return e.cluster.Stats() }

// Prompts keeps the prompts of a trace for endpoints that replay the same rows and have
// the same block sizes and generated tokens in the cache, so that each prompt is hashed
// once. It is safe for concurrent use.
type Prompts struct {
	rows []atomic.Pointer[engine.Prompt]
	room atomic.Int64 // for further blocks
}

// maxKeptBlocks limits the memory of the hashes, 8 bytes each.
const maxKeptBlocks = 16 << 20

// NewPrompts returns an empty set of prompts for a number of rows.
func NewPrompts(rows int) *Prompts {
	p := &Prompts{rows: make([]atomic.Pointer[engine.Prompt], rows)}
	p.room.Store(maxKeptBlocks)
	return p
}

// of returns the prompt of a row, made by the function if it is not there yet.
func (p *Prompts) of(row int, create func() *engine.Prompt) *engine.Prompt {
	if p == nil || row >= len(p.rows) {
		return create()
	}
	if kept := p.rows[row].Load(); kept != nil {
		return kept
	}
	made := create()
	if p.room.Add(-int64(made.Blocks())) >= 0 {
		p.rows[row].Store(made)
	}
	return made
}
