package synth

import "container/heap"

// Queue is a priority queue of events ordered by time. Events at the same time
// come out in the order in which they were pushed. The zero Queue is empty.
type Queue[T any] struct {
	events events[T]
	pushed uint64
}

type event[T any] struct {
	at    float64
	order uint64
	value T
}

// events is a heap whose values are moved in place: Push and Pop of the interface would
// allocate.
type events[T any] []event[T]

func (e events[T]) Len() int { return len(e) }
func (e events[T]) Less(i, k int) bool {
	return e[i].at < e[k].at || e[i].at == e[k].at && e[i].order < e[k].order
}
func (e events[T]) Swap(i, k int) { e[i], e[k] = e[k], e[i] }
func (e events[T]) Push(any)      { panic("not used") }
func (e events[T]) Pop() any      { panic("not used") }

// Len returns the number of values in the queue.
func (q *Queue[T]) Len() int { return len(q.events) }

// First returns the first value and its time. The queue must not be empty; the
// pointer is valid until the next Push or Pop.
func (q *Queue[T]) First() (at float64, value *T) { return q.events[0].at, &q.events[0].value }

// Push adds a value.
func (q *Queue[T]) Push(at float64, value T) {
	q.events = append(q.events, event[T]{at, q.pushed, value})
	q.pushed++
	heap.Fix(&q.events, len(q.events)-1)
}

// Pop removes the first value. The queue must not be empty.
func (q *Queue[T]) Pop() (at float64, value T) {
	first, last := q.events[0], len(q.events)-1
	q.events.Swap(0, last)
	q.events[last] = event[T]{} // for the garbage collector
	if q.events = q.events[:last]; last > 0 {
		heap.Fix(&q.events, 0)
	}
	return first.at, first.value
}
