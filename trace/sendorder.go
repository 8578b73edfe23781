package trace

import (
	"cmp"
	"slices"
)

// The assumed answer times in milliseconds, where the time of a later turn has to
// be estimated from its delay: to the first token, and from one token to the next.
const (
	AssumedTTFT = 500.0
	AssumedTPOT = 20.0
)

// AnswerTime returns the assumed time of an answer of osl tokens in milliseconds.
func AnswerTime(osl int) float64 { return AssumedTTFT + AssumedTPOT*float64(max(osl-1, 0)) }

// Sort puts the rows in the order in which they would be sent: a row with a
// timestamp at its arrival, a later turn without one after the assumed end of the
// previous turn (see [AnswerTime]) and its delay. A row with neither and without a
// session stays after its predecessor. Rows of one time keep their order. Sort
// holds the whole trace in memory.
func Sort(reqs Requests) Requests { return sorted(reqs, func(Request) bool { return true }) }

// SendOrder is [Sort] for a trace whose rows are in order of arrival, except for
// turns without a timestamp. It holds the trace in memory from the first row of a
// session on, so a trace without sessions takes none.
func SendOrder(reqs Requests) Requests {
	return sorted(reqs, func(r Request) bool { return r.SessionID != "" })
}

// sorted passes rows on until one begins the part that has to be sorted.
func sorted(reqs Requests, begins func(Request) bool) Requests {
	return func(yield func(Request, error) bool) {
		held := sendOrder{latest: map[string]int{}}
		holding := false
		for r, err := range reqs {
			if err != nil {
				yield(Request{}, err)
				return
			}
			if holding = holding || begins(r); holding {
				held.add(r)
				continue
			}
			if r.Timestamp.Set {
				held.last = r.Timestamp.Value
			}
			if !yield(r, nil) {
				return
			}
		}
		slices.SortStableFunc(held.rows, func(a, b toSend) int { return cmp.Compare(a.at, b.at) })
		for _, r := range held.rows {
			if !yield(r.row, nil) {
				return
			}
		}
	}
}

// sendOrder estimates when rows are sent, given in the order of their trace.
type sendOrder struct {
	rows   []toSend
	latest map[string]int // turn of each session
	last   float64        // time of the row before
}

type toSend struct {
	at     float64 // ms
	before int     // the previous turn, or -1
	row    Request
}

func (o *sendOrder) add(r Request) {
	next := toSend{row: r, before: -1, at: o.last}
	if before, later := o.latest[r.SessionID]; later {
		next.before = before
	}
	switch {
	case r.Timestamp.Set:
		next.at = r.Timestamp.Value
		// The turns before it were sent by then, whatever their estimate.
		for i := next.before; i >= 0 && o.rows[i].at > next.at && !o.rows[i].row.Timestamp.Set; i = o.rows[i].before {
			o.rows[i].at = next.at
		}
	case next.before >= 0:
		before := &o.rows[next.before]
		next.at = before.at + AnswerTime(before.row.OutputLength) + r.Delay.Value
	}
	o.last = next.at
	if r.SessionID != "" {
		o.latest[r.SessionID] = len(o.rows)
	}
	o.rows = append(o.rows, next)
}
