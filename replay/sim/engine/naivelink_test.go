package engine

import (
	"slices"
	"time"
)

// naiveLink is how a rank sends KV caches.
type naiveLink struct {
	active []*naiveTransfer // in order of start
}

type naiveTransfer struct {
	r     *naiveRequest
	start time.Duration
	left  time.Duration // of link time
}

// tick lets a nanosecond pass.
func (l *naiveLink) tick(law Sharing) {
	for _, t := range l.active {
		switch {
		case law != Batch:
			t.left--
		case t.left > 0: // the first works alone
			t.left--
			return
		}
	}
}

// done returns the transfers that have ended.
func (l *naiveLink) done(law Sharing) (ended []*naiveTransfer) {
	for _, t := range l.active {
		switch {
		case t.left == 0:
			ended = append(ended, t)
		case law == Batch:
			return nil
		}
	}
	return ended
}

func (l *naiveLink) remove(r *naiveRequest) {
	l.active = slices.DeleteFunc(l.active, func(t *naiveTransfer) bool { return t.r == r })
}

// arrivals ends transfers: those that began first go first.
func (c *naiveCluster) arrivals(now time.Duration) {
	var ended []*naiveTransfer
	for _, e := range c.front {
		ended = append(ended, e.link.done(c.Transfer.Sharing)...)
	}
	slices.SortStableFunc(ended, func(a, b *naiveTransfer) int { return int(a.start - b.start) })
	for _, t := range ended {
		r := t.r
		if c.Transfer.FirstTokenAfter {
			c.eventLines(now, r, "first")
			c.saw["first token after"]++
		}
		r.at.drop(r)
		r.moved, r.computed, r.until, r.owes = true, len(r.tokens), r.output, 0
		best := c.decode[0]
		for _, e := range c.decode {
			if e.load() < best.load() || e.load() == best.load() && e.toCompute() < best.toCompute() {
				best = e
			}
		}
		best.add(now, r)
	}
}

// wait returns the time of the next event, at most a given one (below 0: none): links
// send until one is done.
func (c *naiveCluster) wait(now, next time.Duration) time.Duration {
	for ; next < 0 || now < next; now++ {
		sending := false
		for _, e := range c.front {
			if len(e.link.done(c.Transfer.Sharing)) > 0 {
				return now
			}
			sending = sending || len(e.link.active) > 0
		}
		if !sending {
			return next
		}
		for _, e := range c.front {
			e.link.tick(c.Transfer.Sharing)
		}
	}
	return next
}
