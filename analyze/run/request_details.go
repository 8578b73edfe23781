package run

import (
	"cmp"
	"math"
	"slices"
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
	// Breakdowns groups requests by turn, ISL, and predicted hit rate.
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
}

func newRequest(rec *replay.Record, timing Timing, counted bool) Request {
	return Request{
		Timing: timing, End: rec.Done, Row: rec.Row, ISL: clampTokens(rec.InputLength), Counted: counted, Class: rec.Class, Turn: 1,
		session: unique.Make(rec.SessionID),
	}
}

// newDetail requires a result with everything but its verdict.
func newDetail(requests []Request, r *Result, tokens *tokenRate, inFlight *spans) *Detail {
	slices.SortFunc(requests, func(a, b Request) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Sent, b.Sent), cmp.Compare(a.End, b.End))
	})
	turns, none := map[unique.Handle[string]]int32{}, unique.Make("")
	for i := range requests {
		if q := &requests[i]; q.session != none {
			turns[q.session]++
			q.Turn = turns[q.session]
		}
	}
	detail := &Detail{Requests: requests}
	var parallel sync.WaitGroup
	parallel.Go(func() { detail.Breakdowns = breakdowns(requests, r) })
	detail.Series = newSeries(requests, r.Window, tokens, inFlight)
	parallel.Wait()
	return detail
}

func clampTokens(tokens int) int32 { return int32(min(max(tokens, 0), math.MaxInt32)) }
