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
	"time"

	"moontide/replay"
	"moontide/replay/sim/engine"
	"moontide/trace"
)

// Endpoint is a [replay.Model]. It is not safe for concurrent use.
type Endpoint struct {
	cluster *engine.Cluster
	cfg     Config
	events  []engine.Event
	answers []replay.Record
	refused []replay.Record // returned by the next Advance
	now     time.Duration
}

// Config configures an [Endpoint].
type Config struct {
	Deployment engine.Deployment
	// TraceBlockSize is the block size of the trace in tokens; 0 is
	// [trace.DefaultBlockSize].
	TraceBlockSize int
	// CacheGenerated makes the engines cache generated tokens too. A trace does
	// not record which later prompt contains them, so they are never hit.
	CacheGenerated bool
}

// New returns an endpoint at time 0.
func New(cfg Config) (*Endpoint, error) {
	cluster, err := cfg.Deployment.New()
	if err != nil {
		return nil, err
	}
	if cfg.TraceBlockSize <= 0 {
		cfg.TraceBlockSize = trace.DefaultBlockSize
	}
	return &Endpoint{cluster: cluster, cfg: cfg}, nil
}

// flight is a request in flight.
type flight struct {
	engine.Request
	row         int
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
	// Check first, because a prompt takes memory proportional to its length.
	if err := e.cluster.Fits(r.InputLength, osl); err != nil {
		e.refuse(row, err)
		return
	}
	f := &flight{row: row, Request: engine.Request{
		Prompt: engine.TracePrompt(engine.Row{
			ISL: r.InputLength, OSL: osl, HashIDs: r.HashIDs, BlockSize: e.cfg.TraceBlockSize,
			Number: row, CacheAnswer: e.cfg.CacheGenerated,
		}, e.cluster.BlockSize()),
		Output: osl, Session: r.SessionID,
	}}
	f.Owner = f
	if err := e.cluster.Submit(now, &f.Request); err != nil {
		e.refuse(row, err)
	}
}

// refuse answers a row that can never be served.
func (e *Endpoint) refuse(row int, err error) {
	e.refused = append(e.refused, replay.Record{
		Row: row, Done: e.now, Status: statusBadRequest, Class: replay.HTTPError,
		Error: fmt.Sprintf("status %d: %v", statusBadRequest, err),
	})
}

// Next returns the time of the next event, and whether there is one.
func (e *Endpoint) Next() (time.Duration, bool) {
	if len(e.refused) > 0 {
		return e.now, true
	}
	return e.cluster.Next()
}

// Advance advances the time and returns the answers completed until then. They
// are valid until the next call.
func (e *Endpoint) Advance(now time.Duration) []replay.Record {
	e.answers = append(e.answers[:0], e.refused...)
	e.refused = e.refused[:0]
	e.events = e.cluster.Advance(now, e.events[:0])
	for _, event := range e.events {
		f := event.Request.Owner.(*flight)
		switch event.Kind {
		case engine.First:
			f.first, f.last = event.At, event.At
			f.gaps = make([]time.Duration, 0, f.Output-1)
		case engine.Token:
			f.gaps = append(f.gaps, event.At-f.last)
			f.last = event.At
		case engine.Finished:
			e.answers = append(e.answers, f.answer())
		}
	}
	return e.answers
}

func (f *flight) answer() replay.Record {
	return replay.Record{
		Row: f.row, First: trace.Some(f.first), Last: trace.Some(f.last), Done: f.last, Gaps: f.gaps,
		Counts: replay.Counts{Input: trace.Some(f.Prompt.Len()), Output: trace.Some(f.Generated()), Cached: trace.Some(f.Cached())},
		Status: statusOK,
	}
}

// Stats returns the state of the engines.
func (e *Endpoint) Stats() engine.Stats { return e.cluster.Stats() }
