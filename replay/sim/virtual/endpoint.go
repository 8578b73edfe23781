// Package virtual is an endpoint on a virtual clock: a deployment of modelled
// engines that answers the rows of a trace as an [replay.Model], without a
// client, a network or time that passes. It is to
// [moontide/replay/sim/engine] what the simulated server is over HTTP:
// the same engines get the same prompts.
//
// Start with [New], and give the endpoint to a [replay.VirtualRunner].
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
	answers []replay.Answer
	refused []replay.Answer // to be told at the next Advance
	now     time.Duration
}

// Config says what answers.
type Config struct {
	Deployment engine.Deployment
	// TraceBlockSize is the number of tokens that an id of the trace stands
	// for; 0 is [trace.DefaultBlockSize].
	TraceBlockSize int
	// CacheGenerated has the engines cache the tokens that they generate. A
	// trace does not say which later prompt has them, so none hits them.
	CacheGenerated bool
}

// New returns an endpoint at the time 0.
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

// flight is a request that is being answered.
type flight struct {
	engine.Request
	row         int
	first, last time.Duration
	gaps        []time.Duration
}

// What the server answers over HTTP to the same requests.
const (
	statusOK         = 200
	statusBadRequest = 400
)

// Submit sends a row. Its answer has the row's OSL, at least one token, and its
// prompt the row's block ids.
func (e *Endpoint) Submit(now time.Duration, row int, r trace.Request) {
	osl := max(r.OutputLength, 1)
	e.now = now
	// First of all, for a prompt takes memory by its length.
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

// refuse answers a row that can never be served, as the server does.
func (e *Endpoint) refuse(row int, err error) {
	e.refused = append(e.refused, replay.Answer{
		Row: row, Done: e.now, Status: statusBadRequest, Class: replay.HTTPError,
		Error: fmt.Sprintf("status %d: %v", statusBadRequest, err),
	})
}

// Next is when something happens next.
func (e *Endpoint) Next() (time.Duration, bool) {
	if len(e.refused) > 0 {
		return e.now, true
	}
	return e.cluster.Next()
}

// Advance moves the clock.
func (e *Endpoint) Advance(now time.Duration) []replay.Answer {
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

func (f *flight) answer() replay.Answer {
	return replay.Answer{
		Row: f.row, First: trace.Some(f.first), Last: trace.Some(f.last), Done: f.last, Gaps: f.gaps,
		Counts: replay.Counts{Input: trace.Some(f.Prompt.Len()), Output: trace.Some(f.Generated()), Cached: trace.Some(f.Cached())},
		Status: statusOK,
	}
}

// Stats are the engines'.
func (e *Endpoint) Stats() engine.Stats { return e.cluster.Stats() }
