package synth

// Queue is a priority queue of events ordered by time. Events at the same time
// come out in the order in which they were pushed. The zero Queue is empty.
type Queue[T any] struct {
	heap   []event[T]
	pushed uint64
}

type event[T any] struct {
	at    float64
	order uint64
	value T
}

func (e *event[T]) before(other *event[T]) bool {
	return e.at < other.at || e.at == other.at && e.order < other.order
}

// Len returns the number of values in the queue.
func (q *Queue[T]) Len() int { return len(q.heap) }

// First returns the first value and its time. The queue must not be empty; the
// pointer is valid until the next Push or Pop.
func (q *Queue[T]) First() (at float64, value *T) { return q.heap[0].at, &q.heap[0].value }

// Push adds a value.
func (q *Queue[T]) Push(at float64, value T) {
	e := event[T]{at, q.pushed, value}
	q.pushed++
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(&q.heap[parent]) {
			break
		}
		q.heap[i] = q.heap[parent]
		i = parent
	}
	q.heap[i] = e
}

// Pop removes the first value. The queue must not be empty.
func (q *Queue[T]) Pop() (at float64, value T) {
	first := q.heap[0]
	last := len(q.heap) - 1
	e := q.heap[last]
	q.heap[last] = event[T]{} // for the garbage collector
	q.heap = q.heap[:last]
	for i := 0; last > 0; {
		child := 2*i + 1
		if child+1 < last && q.heap[child+1].before(&q.heap[child]) {
			child++
		}
		if child >= last || !q.heap[child].before(&e) {
			q.heap[i] = e
			break
		}
		q.heap[i] = q.heap[child]
		i = child
	}
	return first.at, first.value
}
