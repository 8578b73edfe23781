package poll

import (
	"container/heap"
	"time"
)

// deadlines keeps the connections under way in order of their deadlines.
type deadlines []*Conn

// set moves c to a deadline, which takes it in if it was not there.
func (d *deadlines) set(c *Conn, deadline time.Time) {
	c.deadline = deadline
	if c.place == 0 {
		heap.Push(d, c)
	} else {
		heap.Fix(d, c.place-1)
	}
}

func (d *deadlines) remove(c *Conn) {
	if c.place > 0 {
		heap.Remove(d, c.place-1)
	}
}

// passed returns a connection whose deadline has passed, or nil.
func (d deadlines) passed(now time.Time) *Conn {
	if len(d) == 0 || now.Before(d[0].deadline) {
		return nil
	}
	return d[0]
}

// next is how long nothing passes, and at most an hour.
func (d deadlines) next(now time.Time) time.Duration {
	if len(d) == 0 {
		return time.Hour
	}
	return min(max(d[0].deadline.Sub(now), 0), time.Hour)
}

// Of heap.Interface. A place is an index plus one, so that 0 is none.

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].deadline.Before(d[j].deadline) }

func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].place, d[j].place = i+1, j+1
}

func (d *deadlines) Push(x any) {
	c := x.(*Conn)
	*d = append(*d, c)
	c.place = len(*d)
}

func (d *deadlines) Pop() any {
	last := len(*d) - 1
	c := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	c.place = 0
	return c
}
