package engine

import "slices"

// queue holds the requests that wait, first come first served. Those that were
// preempted go before the others, the one that was admitted first before all.
type queue struct {
	preempted []*Request // the next one last
	arrived   []*Request // the next one at head
	head      int
}

func (q *queue) len() int { return len(q.preempted) + len(q.arrived) - q.head }

func (q *queue) push(r *Request) {
	if q.head > len(q.arrived)/2 && len(q.arrived) == cap(q.arrived) {
		n := copy(q.arrived, q.arrived[q.head:])
		clear(q.arrived[n:])
		q.arrived, q.head = q.arrived[:n], 0
	}
	q.arrived = append(q.arrived, r)
}

func (q *queue) pushFront(r *Request) { q.preempted = append(q.preempted, r) }

// front is the request that is next, or nil.
func (q *queue) front() *Request {
	switch {
	case len(q.preempted) > 0:
		return q.preempted[len(q.preempted)-1]
	case q.head < len(q.arrived):
		return q.arrived[q.head]
	}
	return nil
}

func (q *queue) pop() {
	if n := len(q.preempted); n > 0 {
		q.preempted[n-1] = nil
		q.preempted = q.preempted[:n-1]
		return
	}
	q.arrived[q.head] = nil
	q.head++
}

func (q *queue) remove(r *Request) {
	if i := slices.Index(q.preempted, r); i >= 0 {
		q.preempted = slices.Delete(q.preempted, i, i+1)
		return
	}
	if i := slices.Index(q.arrived[q.head:], r); i >= 0 {
		q.arrived = slices.Delete(q.arrived, q.head+i, q.head+i+1)
	}
}
