package trace

import "slices"

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
// It fails with a [*GraphError] if rows wait for each other.
//
// With a codec, most rows are in temporary files (see package spill): Sort then holds
// up to 256 MiB of rows, and 24 bytes and a [Graph] for each row from the first of a
// session on. With the zero Codec it holds the whole trace in memory.
func Sort(reqs Requests, codec Codec) Requests {
	return sorted(reqs, func(Request) bool { return true }, codec)
}

// SendOrder is [Sort] for a trace whose rows are in order of arrival, except for
// rows without a timestamp that wait for others. It holds the trace in memory from the
// first row of a session on, so a trace without sessions takes none.
func SendOrder(reqs Requests) Requests { return sorted(reqs, inSession, Codec{}) }

// inSession reports whether a row may wait for others, or others for it.
func inSession(r Request) bool { return r.SessionID != "" || r.ID != "" || r.After != nil }

// sorted passes rows on until one begins the part that has to be sorted.
func sorted(reqs Requests, begins func(Request) bool, codec Codec) Requests {
	return func(yield func(Request, error) bool) {
		held := sendOrder{store: newRowStore(codec)}
		defer held.store.close()
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
		if err := held.estimate(); err != nil {
			yield(Request{}, err)
			return
		}
		held.store.all(held.time, yield)
	}
}

// Due is what a row tells about when it is sent: at its timestamp or, without one,
// Delay milliseconds after the answers that it waits for. OSL is the length of its
// own answer in tokens.
type Due struct {
	Timestamp Opt[float64]
	Delay     float64
	OSL       int
}

// SendTimes estimates when the rows of a trace are sent, in milliseconds: at their
// timestamps, or after the answers that they wait for, which take [AnswerTime]. A row
// that waits for none and has no timestamp is sent with the row before it, the first
// at 0. No row is sent later than one with a timestamp that waits for it.
func (g *Graph) SendTimes(rows int, due func(row int) Due) []float64 {
	o := sendOrder{graph: g, count: rows, rows: make([]toSend, rows)}
	for i := range o.rows {
		d := due(i)
		o.rows[i] = toSend{at: d.Timestamp.Value, delay: d.Delay, osl: int32(d.OSL), timed: d.Timestamp.Set}
	}
	o.setTimes()
	times := make([]float64, rows)
	for i := range o.rows {
		times[i] = o.rows[i].at
	}
	return times
}

// sendOrder estimates when rows are sent, given in the order of their trace.
type sendOrder struct {
	store   rowStore
	count   int      // rows so far
	rows    []toSend // from the first of a session on
	builder GraphBuilder
	graph   *Graph
	last    float64 // time of the row before
}

type toSend struct {
	at, delay    float64 // ms
	osl          int32
	known, timed bool
}

func (o *sendOrder) add(r Request) error {
	number := o.count
	o.count++
	if len(o.rows) == 0 && !inSession(r) {
		o.builder.Skip()
		if r.Timestamp.Set {
			o.last = r.Timestamp.Value
		}
		return o.store.add(number, o.last, r)
	}
	o.builder.Add(r, 0)
	o.rows = append(o.rows, toSend{at: r.Timestamp.Value, delay: r.Delay.Value, osl: int32(r.OutputLength), timed: r.Timestamp.Set})
	if r.Timestamp.Set {
		return o.store.add(number, r.Timestamp.Value, r)
	}
	return o.store.addUntimed(number, r)
}

// of returns a row by its number.
func (o *sendOrder) of(row int32) *toSend { return &o.rows[int(row)-(o.count-len(o.rows))] }

// time returns the time of a row.
func (o *sendOrder) time(row int) float64 { return o.of(int32(row)).at }

// estimate finds the times of all rows.
func (o *sendOrder) estimate() (err error) {
	if o.graph, err = o.builder.Graph(); err != nil {
		return err
	}
	o.setTimes()
	return nil
}

// setTimes needs the graph and all rows.
func (o *sendOrder) setTimes() {
	var first []int32 // stack: the times of the last rows are found first
	for row := o.count - len(o.rows); row < o.count; row++ {
		first = append(first[:0], int32(row))
		for len(first) > 0 {
			next := first[len(first)-1]
			if before := o.unknownBefore(next); before != nil {
				first = append(first, before...)
				continue
			}
			first = first[:len(first)-1]
			o.setTime(next)
		}
		o.last = o.time(row)
	}
}

// unknownBefore returns the rows that a row waits for and whose times are unknown.
func (o *sendOrder) unknownBefore(row int32) (unknown []int32) {
	if o.of(row).known {
		return nil
	}
	for _, before := range o.graph.Before(int(row)) {
		if !o.of(before).known {
			unknown = append(unknown, before)
		}
	}
	return unknown
}

func (o *sendOrder) setTime(row int32) {
	r := o.of(row)
	if r.known {
		return
	}
	r.known = true
	before := o.graph.Before(int(row))
	switch {
	case r.timed:
		o.sentBy(before, r.at)
	case len(before) > 0:
		r.at = 0
		for _, i := range before {
			r.at = max(r.at, o.of(i).at+AnswerTime(int(o.of(i).osl)))
		}
		r.at += r.delay
	default:
		r.at = o.last
	}
}

// sentBy lowers the estimates of rows, and of those that they wait for, to a time by
// which they were sent.
func (o *sendOrder) sentBy(rows []int32, at float64) {
	left := slices.Clone(rows)
	for len(left) > 0 {
		i := left[len(left)-1]
		left = left[:len(left)-1]
		if r := o.of(i); r.at > at && !r.timed {
			r.at = at
			left = append(left, o.graph.Before(int(i))...)
		}
	}
}
