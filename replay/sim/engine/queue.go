package engine

import (
	"slices"
	"sort"
)

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

// pushFront adds an item before the others. It makes room for more than one, so
// that repeated calls rarely move the others.
func (q *fifo[T]) pushFront(item T) {
	const room = 64
	if q.head == 0 {
		q.items = slices.Insert(q.items, 0, make([]T, room)...)
		q.head = room
	}
	q.head--
	q.items[q.head] = item
}

// insert inserts an item after those that are not after it.
func (q *fifo[T]) insert(item T, after func(other T) bool) {
	q.reclaim()
	i := sort.Search(q.len(), func(i int) bool { return after(q.items[q.head+i]) })
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

// remove removes the first item that matches, if any.
func (q *fifo[T]) remove(match func(T) bool) {
	if i := slices.IndexFunc(q.items[q.head:], match); i >= 0 {
		q.items = slices.Delete(q.items, q.head+i, q.head+i+1)
	}
}
