package trace

import (
	"errors"
	"fmt"

	"moontide/trace/block"
	"moontide/trace/spill"
)

// rowMemory bounds the rows held of each kind, with a known time or not, in bytes.
const rowMemory = 64 << 20

// The assumed response times in milliseconds, where the time of a later turn has to
// be estimated from its delay: to the first token, and from one token to the next.
const (
	AssumedTTFT = 500.0
	AssumedTPOT = 20.0
)

// ResponseTime returns the assumed time of a response of osl tokens in milliseconds.
func ResponseTime(osl int) float64 { return AssumedTTFT + AssumedTPOT*float64(max(osl-1, 0)) }

// Sort puts the rows in the order in which they would be sent: a row with a
// timestamp at its arrival, one without after the assumed end of the last row that it
// waits for (see [Graph] and [ResponseTime]) and its delay. A row that waits for none
// and has no timestamp stays after its predecessor. Rows of one time keep their order.
// It fails with a [*GraphError] if rows wait for each other.
//
// Most rows are in temporary files (see package spill): Sort holds up to 128 MiB of rows,
// and 16 bytes and a [Graph] for each row from the first of a session on.
func Sort(reqs Requests) Requests {
	return sorted(reqs, func(Request) bool { return true }, rowMemory)
}

// SendOrder is [Sort] for a trace whose rows are in order of arrival, except for
// rows without a timestamp that wait for others. It passes on the rows before the first of
// a session.
func SendOrder(reqs Requests) Requests { return sorted(reqs, inSession, rowMemory) }

// inSession reports whether a row may wait for others, or others for it.
func inSession(r Request) bool { return r.SessionID != "" || r.ID != "" || r.After != nil }

// sorted passes rows on until one begins the part that has to be sorted.
func sorted(reqs Requests, begins func(Request) bool, memory int) Requests {
	return func(yield func(Request, error) bool) {
		held := sendOrder{timed: spill.Sorter{Memory: memory}, held: spill.Sorter{Memory: memory}}
		defer held.close()
		holding := false
		for r, err := range reqs {
			if err == nil {
				if holding = holding || begins(r); holding {
					if err = held.add(r); err == nil {
						continue
					}
				}
			}
			if err != nil {
				yield(Request{}, err)
				return
			}
			if r.Timestamp.Set {
				held.last = r.Timestamp.Value
			}
			if !yield(r, nil) {
				return
			}
		}
		held.all(yield)
	}
}

// Due is what a row tells about when it is sent: at its timestamp or, without one, after
// the responses that it waits for and a delay.
type Due struct {
	// At points to the timestamp, or else to the delay, which the estimate then replaces;
	// both are in milliseconds.
	At    *float64
	Timed bool // it has a timestamp
	OSL   int  // length of its own response in tokens
}

// SendTimes estimates when the rows of a trace are sent, in milliseconds: at their
// timestamps, or after the responses that they wait for, which take [ResponseTime]. A row
// that waits for none and has no timestamp is sent with the row before it, the first
// at 0. No row is sent later than one with a timestamp that waits for it. due is called
// several times for each row. The rows before first are left out; last is the time of the
// one before first.
func (g *Graph) SendTimes(first, rows int, last float64, due func(row int) Due) {
	t := sendTimes{graph: g, due: due, last: last}
	for row := first; row < rows; row++ {
		t.find(int32(row))
	}
}

// sendTimes estimates when rows are sent.
type sendTimes struct {
	graph *Graph
	due   func(row int) Due
	known rowSet  // the rows whose time is found
	last  float64 // time of the row before

	stack, lowered []int32 // to be reused
}

// find finds the time of a row, after those of the rows before it and of all that it waits
// for.
func (t *sendTimes) find(row int32) {
	t.stack = append(t.stack[:0], row)
	for len(t.stack) > 0 {
		next := t.stack[len(t.stack)-1]
		if t.known.has(next) {
			t.stack = t.stack[:len(t.stack)-1]
			continue
		}
		ready := true
		for _, before := range t.graph.Before(int(next)) {
			if !t.known.has(before) {
				t.stack, ready = append(t.stack, before), false
			}
		}
		if ready {
			t.set(next)
		}
	}
	t.last = *t.due(int(row)).At
}

// set sets the time of a row after those of the rows that it waits for.
func (t *sendTimes) set(row int32) {
	t.known.add(row)
	r := t.due(int(row))
	before := t.graph.Before(int(row))
	switch {
	case r.Timed:
		t.sentBy(before, *r.At)
	case len(before) > 0:
		ended := 0.0
		for _, i := range before {
			b := t.due(int(i))
			ended = max(ended, *b.At+ResponseTime(b.OSL))
		}
		*r.At += ended
	default:
		*r.At = t.last
	}
}

// sentBy lowers the estimates of rows, and of those that they wait for, to a time by
// which they were sent.
func (t *sendTimes) sentBy(rows []int32, at float64) {
	t.lowered = append(t.lowered[:0], rows...)
	for len(t.lowered) > 0 {
		i := t.lowered[len(t.lowered)-1]
		t.lowered = t.lowered[:len(t.lowered)-1]
		if r := t.due(int(i)); !r.Timed && *r.At > at {
			*r.At = at
			t.lowered = append(t.lowered, t.graph.Before(int(i))...)
		}
	}
}

// sendOrder holds rows, most of them on disk, until their times are found. Rows of one time
// keep their order.
type sendOrder struct {
	timed   spill.Sorter       // by time
	held    spill.Sorter       // rows whose time is not known yet, after the timed ones, by place in rows
	data    []byte             // to be reused
	first   int                // row in rows
	rows    block.List[toSend] // from the first of a session on
	builder GraphBuilder
	last    float64 // time of the row before
}

type toSend struct {
	at    float64 // as in [Due]
	osl   int32
	timed bool
}

func (o *sendOrder) add(r Request) error {
	o.data = AppendStored(o.data[:0], &r)
	if o.rows.Len() == 0 && !inSession(r) {
		o.first++
		o.builder.Skip()
		if r.Timestamp.Set {
			o.last = r.Timestamp.Value
		}
		return sorting(o.timed.Add(spill.KeyOf(o.last), o.data))
	}
	o.builder.Add(r, 0)
	row := toSend{at: r.Delay.Value, osl: int32(r.OutputLength), timed: r.Timestamp.Set}
	if row.timed {
		row.at = r.Timestamp.Value
	}
	o.rows.Add(row)
	return sorting(o.held.Add(uint64(o.rows.Len()-1), o.data))
}

// estimate finds the times of all rows, by which it sorts them. It fails if rows wait for
// each other.
func (o *sendOrder) estimate() error {
	graph, err := o.builder.Graph()
	if err != nil {
		return err
	}
	graph.SendTimes(o.first, o.first+o.rows.Len(), o.last, func(row int) Due {
		r := o.rows.At(uint32(row - o.first))
		return Due{At: &r.at, Timed: r.timed, OSL: int(r.osl)}
	})
	for b, err := range o.held.All {
		if err == nil {
			err = o.timed.Add(spill.KeyOf(o.rows.At(uint32(b.Key)).at), b.Data)
		}
		if err != nil {
			return sorting(err)
		}
	}
	return sorting(o.held.Close())
}

// all yields the rows.
func (o *sendOrder) all(yield func(Request, error) bool) {
	if err := o.estimate(); err != nil {
		yield(Request{}, err)
		return
	}
	for b, err := range o.timed.All {
		if err != nil {
			yield(Request{}, sorting(err))
			return
		}
		if !yield(ParseStored(b.Data, nil), nil) {
			return
		}
	}
}

func (o *sendOrder) close() error {
	return errors.Join(o.timed.Close(), o.held.Close(), o.builder.Close())
}

func sorting(err error) error {
	if err != nil {
		return fmt.Errorf("sorting rows: %w", err)
	}
	return nil
}
