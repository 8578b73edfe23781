package main

import (
	"math"
	"math/bits"
	"time"
)

// spread is a histogram of durations: what the live view needs of them, in a
// few kilobytes and some nanoseconds for each. A bucket is a thirty-second of a
// power of two wide, so a quantile is off by 2 % at most.
type spread struct {
	counts [spreadBuckets]uint32
	n      int
}

const (
	spreadUnit    = time.Microsecond
	spreadSteps   = 32 // buckets to a power of two
	spreadPowers  = 36 // up to a day
	spreadBuckets = spreadPowers * spreadSteps
)

func spreadBucket(d time.Duration) int {
	units := uint64(max(d, 0) / spreadUnit)
	if units < 2*spreadSteps {
		return int(units)
	}
	power := bits.Len64(units) - bits.Len64(spreadSteps) // units>>power is from spreadSteps to twice that
	return min(power*spreadSteps+int(units>>power), spreadBuckets-1)
}

// middle is the duration in the middle of a bucket.
func middle(bucket int) time.Duration {
	if bucket < 2*spreadSteps {
		return time.Duration(bucket) * spreadUnit
	}
	power := bucket/spreadSteps - 1
	low := uint64(bucket%spreadSteps+spreadSteps) << power
	return time.Duration(low+1<<power/2) * spreadUnit
}

func (s *spread) add(d time.Duration) {
	s.counts[spreadBucket(d)]++
	s.n++
}

func (s *spread) merge(o *spread) {
	for i, n := range o.counts {
		s.counts[i] += n
	}
	s.n += o.n
}

// quantile is the duration that the share q does not exceed. It is 0 of none.
func (s *spread) quantile(q float64) time.Duration {
	rank := max(1, int(math.Ceil(q*float64(s.n))))
	seen := 0
	for i, n := range s.counts {
		if seen += int(n); n > 0 && seen >= rank {
			return middle(i)
		}
	}
	return 0
}

// liveWindow is how much of the past the live view is about.
const liveWindow = 10 * time.Second

// recent is the spread of what was added within the window, second by second.
// Instants are since the run's start.
type recent struct {
	seconds [int(liveWindow / time.Second)]struct {
		second int64
		spread
	}
}

// add takes a duration that was known at an instant.
func (r *recent) add(at, d time.Duration) {
	second := int64(at / time.Second)
	slot := &r.seconds[int(second)%len(r.seconds)]
	switch {
	case slot.second < second:
		slot.second, slot.spread = second, spread{}
	case slot.second > second: // out of the window meanwhile
		return
	}
	slot.add(d)
}

// until is the spread of the window that ends at an instant.
func (r *recent) until(now time.Duration) *spread {
	var all spread
	second := int64(now / time.Second)
	for i := range r.seconds {
		if slot := &r.seconds[i]; slot.second > second-int64(len(r.seconds)) {
			all.merge(&slot.spread)
		}
	}
	return &all
}

// arrivals says how many rows of a trace have arrived by an instant, in a few
// kilobytes whatever the trace's length.
type arrivals struct {
	counts [4096]int // of each step
	step   time.Duration
	rows   int
}

// add takes the arrival of the next row.
func (a *arrivals) add(at time.Duration) {
	if a.step == 0 {
		a.step = 10 * time.Millisecond
	}
	at = max(at, 0)
	for int64(at/a.step) >= int64(len(a.counts)) { // two steps become one
		half := len(a.counts) / 2
		for i := range half {
			a.counts[i] = a.counts[2*i] + a.counts[2*i+1]
		}
		clear(a.counts[half:])
		a.step *= 2
	}
	a.counts[at/a.step]++
	a.rows++
}

// by is how many have arrived at now. Within a step they are taken to come
// evenly.
func (a *arrivals) by(now time.Duration) int {
	if a.step == 0 || now < 0 {
		return 0
	}
	whole := int(min(int64(now/a.step), int64(len(a.counts))))
	n := 0
	for _, c := range a.counts[:whole] {
		n += c
	}
	if whole < len(a.counts) {
		part := float64(now%a.step) / float64(a.step)
		n += int(float64(a.counts[whole]) * part)
	}
	return n
}

// progressed is how far a run was at an instant.
type progressed struct {
	at                      time.Duration
	due, sent, done, tokens float64
}

// pace turns counts into rates over the window.
type pace struct{ past []progressed }

// add notes how far a run is. What is older than the window is let go, but for
// the last of it, from which the window begins.
func (p *pace) add(now progressed) {
	p.past = append(p.past, now)
	for len(p.past) > 2 && p.past[1].at <= now.at-liveWindow {
		p.past = p.past[1:]
	}
}

// rates is how much was added a second over the window. It is all 0 where no
// time has passed.
func (p *pace) rates() progressed {
	if len(p.past) < 2 {
		return progressed{}
	}
	first, last := p.past[0], p.past[len(p.past)-1]
	seconds := (last.at - first.at).Seconds()
	if seconds <= 0 {
		return progressed{}
	}
	return progressed{
		due: (last.due - first.due) / seconds, sent: (last.sent - first.sent) / seconds,
		done: (last.done - first.done) / seconds, tokens: (last.tokens - first.tokens) / seconds,
	}
}
