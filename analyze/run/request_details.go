package run

import (
	"math"
	"sync"
	"time"
	"unique"

	"moontide/replay"
)

// Detail describes a run by request, over time, and by kind of request.
type Detail struct {
	// Requests holds all requests in row order, including those outside the window.
	Requests []Request
	// Series is the measured part of the run over time.
	Series Series
	// Breakdowns groups requests by ISL and predicted hit rate.
	Breakdowns []Breakdown
}

// Request is one request of a [Detail].
type Request struct {
	Timing
	End     time.Duration
	Row     int
	session unique.Handle[string]
	ISL     int32 // tokens, as in the trace
	Turn    int32 // turn in the session, from 1
	Class   replay.Class
	Counted bool // completed, and entirely in the measured part

	inSession     bool
	links         int32 // place in collector.links plus 1, 0 if none
	input, cached int32 // the server's counts; without them the ISL and -1
	osl           int32
	prompt        int32 // place in the history of prompts, -1 if not sent
}

func newRequest(rec *replay.Record, timing Timing, counted bool) Request {
	q := Request{
		Timing: timing, End: rec.Done, Row: rec.Row, ISL: clampTokens(rec.InputLength), Counted: counted, Class: rec.Class, Turn: 1,
		session: noSession, cached: -1, osl: clampTokens(rec.OutputLength), prompt: -1,
	}
	if rec.SessionID != "" {
		q.session = unique.Make(rec.SessionID)
	}
	if q.input = q.ISL; rec.Counts.Input.Set {
		q.input = clampTokens(rec.Counts.Input.Value)
	}
	if rec.Counts.Cached.Set {
		q.cached = clampTokens(rec.Counts.Cached.Value)
	}
	return q
}

// newDetail requires sorted requests and a result with everything but its verdict.
func newDetail(requests []Request, r *Result, tokens *tokenRate, inFlight *spans) *Detail {
	detail := &Detail{Requests: requests}
	var parallel sync.WaitGroup
	parallel.Go(func() { detail.Breakdowns = breakdowns(requests, r) })
	detail.Series = newSeries(requests, r.Window, tokens, inFlight)
	parallel.Wait()
	return detail
}

func clampTokens(tokens int) int32 { return int32(min(max(tokens, 0), math.MaxInt32)) }
