package poll

import (
	"container/heap"
	"time"
)

// deadlines is a heap of the connections with an exchange, ordered by deadline.
type deadlines []*Conn

// set changes the deadline of c, and adds c if necessary.
func (d *deadlines) set(c *Conn, deadline time.Time) {
	c.deadline = deadline
	if c.heapPlace == 0 {
		heap.Push(d, c)
	} else {
		heap.Fix(d, c.heapPlace-1)
	}
}

func (d *deadlines) remove(c *Conn) {
	if c.heapPlace > 0 {
		heap.Remove(d, c.heapPlace-1)
	}
}

// passed returns a connection whose deadline has passed, or nil.
func (d deadlines) passed(now time.Time) *Conn {
	if len(d) == 0 || now.Before(d[0].deadline) {
		return nil
	}
	return d[0]
}

// next returns the time to the next deadline, at most an hour.
func (d deadlines) next(now time.Time) time.Duration {
	if len(d) == 0 {
		return time.Hour
	}
	return min(max(d[0].deadline.Sub(now), 0), time.Hour)
}

// The remaining methods implement heap.Interface. heapPlace is the index plus one;
// 0 means not in the heap.

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].deadline.Before(d[j].deadline) }

func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].heapPlace, d[j].heapPlace = i+1, j+1
}

func (d *deadlines) Push(x any) {
	c := x.(*Conn)
	*d = append(*d, c)
	c.heapPlace = len(*d)
}

func (d *deadlines) Pop() any {
	last := len(*d) - 1
	c := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	c.heapPlace = 0
	return c
}
