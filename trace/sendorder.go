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
// timestamp at its arrival, one without after the assumed end of the last row that it
// waits for (see [Graph] and [AnswerTime]) and its delay. A row that waits for none
// and has no timestamp stays after its predecessor. Rows of one time keep their order.
// Sort holds the whole trace in memory. It fails with a [*GraphError] if rows wait for
// each other.
func Sort(reqs Requests) Requests { return sorted(reqs, func(Request) bool { return true }) }

// SendOrder is [Sort] for a trace whose rows are in order of arrival, except for
// rows without a timestamp that wait for others. It holds the trace in memory from the
// first row of a session on, so a trace without sessions takes none.
func SendOrder(reqs Requests) Requests { return sorted(reqs, inSession) }

// inSession reports whether a row may wait for others, or others for it.
func inSession(r Request) bool { return r.SessionID != "" || r.ID != "" || r.After != nil }

// sorted passes rows on until one begins the part that has to be sorted.
func sorted(reqs Requests, begins func(Request) bool) Requests {
	return func(yield func(Request, error) bool) {
		var held sendOrder
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
		if err := held.estimate(); err != nil {
			yield(Request{}, err)
			return
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
	rows    []toSend
	builder GraphBuilder
	graph   *Graph
	last    float64 // time of the row before
}

type toSend struct {
	at    float64 // ms
	known bool
	row   Request
}

func (o *sendOrder) add(r Request) {
	o.builder.Add(r, 0)
	o.rows = append(o.rows, toSend{row: r})
}

// estimate finds the times of all rows.
func (o *sendOrder) estimate() (err error) {
	if o.graph, err = o.builder.Graph(); err != nil {
		return err
	}
	var first []int32 // stack: the times of the last rows are found first
	for row := range o.rows {
		first = append(first[:0], int32(row))
		for len(first) > 0 {
			next := first[len(first)-1]
			if before := o.unknownBefore(next); before != nil {
				first = append(first, before...)
				continue
			}
			first = first[:len(first)-1]
			o.setTime(int(next))
		}
		o.last = o.rows[row].at
	}
	return nil
}

// unknownBefore returns the rows that a row waits for and whose times are unknown.
func (o *sendOrder) unknownBefore(row int32) (unknown []int32) {
	if o.rows[row].known {
		return nil
	}
	for _, before := range o.graph.Before(int(row)) {
		if !o.rows[before].known {
			unknown = append(unknown, before)
		}
	}
	return unknown
}

func (o *sendOrder) setTime(row int) {
	r := &o.rows[row]
	if r.known {
		return
	}
	r.known, r.at = true, o.last
	before := o.graph.Before(row)
	switch {
	case r.row.Timestamp.Set:
		r.at = r.row.Timestamp.Value
		o.sentBy(before, r.at)
	case len(before) > 0:
		r.at = 0
		for _, i := range before {
			r.at = max(r.at, o.rows[i].at+AnswerTime(o.rows[i].row.OutputLength))
		}
		r.at += r.row.Delay.Value
	}
}

// sentBy lowers the estimates of rows, and of those that they wait for, to a time by
// which they were sent.
func (o *sendOrder) sentBy(rows []int32, at float64) {
	left := slices.Clone(rows)
	for len(left) > 0 {
		i := left[len(left)-1]
		left = left[:len(left)-1]
		if r := &o.rows[i]; r.at > at && !r.row.Timestamp.Set {
			r.at = at
			left = append(left, o.graph.Before(int(i))...)
		}
	}
}
