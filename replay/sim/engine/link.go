package engine

import (
	"slices"
	"time"
)

// link carries the KV caches that a prefill engine sends.
type link struct {
	sharing Sharing
	active  []transferUnderWay // in order of start
	since   time.Duration      // when the work left was last brought up to date
}

// transferUnderWay is a transfer and the link time that it still needs.
type transferUnderWay struct {
	r     *Request
	start time.Duration
	left  time.Duration
}

func (l *link) start(now time.Duration, r *Request, work time.Duration) {
	l.progress(now)
	l.active = append(l.active, transferUnderWay{r, now, work})
}

func (l *link) cancel(now time.Duration, r *Request) {
	l.progress(now)
	l.active = slices.DeleteFunc(l.active, func(t transferUnderWay) bool { return t.r == r })
}

// progress brings the work left up to date.
func (l *link) progress(now time.Duration) {
	passed := now - l.since
	l.since = now
	for i := range l.active {
		t := &l.active[i]
		done := passed
		if l.sharing == Batch {
			done = min(passed, t.left)
			passed -= done
		}
		t.left -= done
	}
}

// next returns when the next transfers end, assuming that no other starts.
func (l *link) next() (at time.Duration, ok bool) {
	if len(l.active) == 0 {
		return 0, false
	}
	const most = forever / 2 // prevents overflow
	least, total := l.active[0].left, time.Duration(0)
	for _, t := range l.active {
		least = min(least, t.left)
		total = min(total+t.left, most)
	}
	if l.sharing == Batch {
		return l.since + total, true
	}
	return l.since + least, true
}

// end appends the transfers that end now, in order of start.
func (l *link) end(now time.Duration, ended []transferUnderWay) []transferUnderWay {
	l.progress(now)
	busy := func(t transferUnderWay) bool { return t.left > 0 }
	if l.sharing == Batch && slices.ContainsFunc(l.active, busy) {
		return ended
	}
	l.active = slices.DeleteFunc(l.active, func(t transferUnderWay) bool {
		if !busy(t) {
			ended = append(ended, t)
		}
		return !busy(t)
	})
	return ended
}
