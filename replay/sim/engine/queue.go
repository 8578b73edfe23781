package engine

import "slices"

// fifo is a queue that reuses the memory of removed items.
type fifo[T any] struct {
	items []T // starting at head
	head  int
}

func (q *fifo[T]) len() int { return len(q.items) - q.head }

func (q *fifo[T]) front() T { return q.items[q.head] }

func (q *fifo[T]) push(item T) {
	q.reclaim()
	q.items = append(q.items, item)
}

// insert inserts an item before index i.
func (q *fifo[T]) insert(i int, item T) {
	q.reclaim()
	q.items = slices.Insert(q.items, q.head+i, item)
}

// reclaim moves the items to the start of the array once most of it is free.
func (q *fifo[T]) reclaim() {
	if q.head > 64 && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
}

func (q *fifo[T]) pop() T {
	var none T
	item := q.items[q.head]
	q.items[q.head] = none
	q.head++
	return item
}

// index returns the index of the first item that matches, or -1.
func (q *fifo[T]) index(match func(T) bool) int { return slices.IndexFunc(q.items[q.head:], match) }

func (q *fifo[T]) removeAt(i int) { q.items = slices.Delete(q.items, q.head+i, q.head+i+1) }

// waitQueue holds waiting requests, first come first served. Preempted requests
// precede the others, in order of admission.
type waitQueue struct {
	preempted []*Request // in reverse order: the next one is last
	arrived   fifo[*Request]
}

func (q *waitQueue) len() int { return len(q.preempted) + q.arrived.len() }

func (q *waitQueue) push(r *Request)      { q.arrived.push(r) }
func (q *waitQueue) pushFront(r *Request) { q.preempted = append(q.preempted, r) }

// front returns the next request, or nil.
func (q *waitQueue) front() *Request {
	switch {
	case len(q.preempted) > 0:
		return q.preempted[len(q.preempted)-1]
	case q.arrived.len() > 0:
		return q.arrived.front()
	}
	return nil
}

func (q *waitQueue) pop() {
	if n := len(q.preempted); n > 0 {
		q.preempted[n-1] = nil
		q.preempted = q.preempted[:n-1]
		return
	}
	q.arrived.pop()
}

func (q *waitQueue) remove(r *Request) {
	if i := slices.Index(q.preempted, r); i >= 0 {
		q.preempted = slices.Delete(q.preempted, i, i+1)
		return
	}
	if i := q.arrived.index(func(other *Request) bool { return other == r }); i >= 0 {
		q.arrived.removeAt(i)
	}
}
