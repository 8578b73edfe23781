package run

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"moontide/replay"
)

// Detail is what a run was like request by request, over time, and by the kinds
// of requests. It takes some 120 bytes a request.
type Detail struct {
	// Requests are all, also those outside the window, in the order of their
	// rows.
	Requests []Request
	// Series is the part of the run that was measured over time.
	Series Series
	// Groups divide the completed and failed requests: by the turn of their
	// session, by their ISL, and by how much of their prompts was predicted to
	// be cached. One that does not divide them is left out.
	Groups []Group
}

// Request is what a [Detail] keeps of a record.
type Request struct {
	Timing
	End     time.Duration
	Row     int
	ISL     int32 // tokens, as the trace has it
	Turn    int32 // of its session, from 1
	session int32 // 0 is none
	Class   replay.Class
	Counted bool // completed, and wholly in what was measured
}

// detailer collects a Detail.
type detailer struct {
	requests []Request
	sessions map[string]int32
}

func (d *detailer) add(rec *replay.Record, timing Timing, counted bool) {
	q := Request{Timing: timing, End: rec.Done, Row: rec.Row, ISL: clampTokens(rec.InputLength), Counted: counted, Class: rec.Class, Turn: 1}
	if rec.SessionID != "" {
		q.session = d.session(rec.SessionID)
	}
	d.requests = append(d.requests, q)
}

// session is the number of a session, from 1.
func (d *detailer) session(id string) int32 {
	number, known := d.sessions[id]
	if !known {
		if d.sessions == nil {
			d.sessions = map[string]int32{}
		}
		number = int32(len(d.sessions) + 1)
		d.sessions[id] = number
	}
	return number
}

// finish makes the Detail of a result that is known but for its verdict.
func (d *detailer) finish(r *Result, tokens *tokenRate) *Detail {
	slices.SortFunc(d.requests, func(a, b Request) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Sent, b.Sent), cmp.Compare(a.End, b.End))
	})
	turns := make([]int32, len(d.sessions)+1)
	for i := range d.requests {
		// Numbers go by the order in which sessions came, which is chance.
		if q := &d.requests[i]; q.session > 0 {
			turns[q.session]++
			q.Turn, q.session = turns[q.session], 1
		}
	}
	detail := &Detail{Requests: d.requests}
	var dividing sync.WaitGroup // neither knows of the other
	dividing.Go(func() { detail.Groups = groupsOf(d.requests, r) })
	detail.Series = seriesOf(d.requests, r.Window, tokens)
	dividing.Wait()
	return detail
}

// clampTokens is a number of tokens in half the memory.
func clampTokens(tokens int) int32 { return int32(min(max(tokens, 0), math.MaxInt32)) }
