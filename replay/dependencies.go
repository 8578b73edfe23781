package replay

import (
	"time"

	"moontide/trace"
)

// result is how a row ended.
type result uint8

const (
	completed result = iota
	failed           // its request failed, or a row that it waited for did
	cut              // its session was ended: by a limit, the model's context, or a request that was abandoned
)

// resultOf returns the result of a row whose request ended with a class.
func resultOf(c Class) result {
	switch c {
	case OK:
		return completed
	case Abandoned:
		return cut
	}
	return failed
}

// waits returns a function that returns, for rows in order, the rows that a row waits
// for. Without a graph, these are earlier rows.
func waits(graph *trace.Graph) func(r trace.Request, row int) []int32 {
	if graph != nil {
		return func(_ trace.Request, row int) []int32 { return graph.Before(row) }
	}
	var earlier trace.Earlier
	return func(r trace.Request, _ int) []int32 { return earlier.Add(r) }
}

// dependencies holds the rows that wait for others, and the ends of rows that others
// wait for. It forgets an end when no row is left that waits for it. It is pure: see
// schedule.
type dependencies struct {
	graph   *trace.Graph // nil: ends are not forgotten
	ends    map[int]end
	waiting map[int][]*waiter // by the row that is waited for
}

// end is the end of a row.
type end struct {
	at     time.Duration
	result result
	left   int // rows that wait for it and have not been added; negative if unknown
}

// waiter is a row that waits for others.
type waiter struct {
	job
	left     int           // rows that have not ended
	at       time.Duration // the last end so far
	result   result
	released bool // it was returned
}

func newDependencies(graph *trace.Graph) dependencies {
	return dependencies{graph: graph, ends: map[int]end{}, waiting: map[int][]*waiter{}}
}

// add adds a row that waits for others. It returns whether they have all ended, or
// enough of them to know that the row is not sent.
func (d *dependencies) add(j job) (w *waiter, ready bool) {
	w = &waiter{job: j}
	for _, row := range j.before {
		before := int(row)
		e, ended := d.ends[before]
		if !ended {
			w.left++
			d.waiting[before] = append(d.waiting[before], w)
			continue
		}
		w.take(e)
		if e.left--; e.left == 0 {
			delete(d.ends, before)
		} else {
			d.ends[before] = e
		}
	}
	return w, w.leave()
}

// take handles the end of a row that w waits for. A failure outweighs a cut.
func (w *waiter) take(e end) {
	w.at = max(w.at, e.at)
	if w.result != failed && e.result != completed {
		w.result = e.result
	}
}

// leave reports whether the waiter no longer waits. It returns true only once.
func (w *waiter) leave() bool {
	if w.released || w.left > 0 && w.result == completed {
		return false
	}
	w.released = true
	return true
}

// ended handles the end of a row. It returns the rows that no longer wait.
func (d *dependencies) ended(row int, at time.Duration, f result) (free []*waiter) {
	e := end{at: at, result: f, left: -1}
	waiters := d.waiting[row]
	delete(d.waiting, row)
	for _, w := range waiters {
		w.left--
		w.take(e)
		if w.leave() {
			free = append(free, w)
		}
	}
	if d.graph != nil {
		e.left = d.graph.Waiting(row) - len(waiters)
	}
	if e.left != 0 {
		d.ends[row] = e
	}
	return free
}
