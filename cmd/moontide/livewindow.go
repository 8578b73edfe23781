package main

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// spread is a histogram of durations up to a day, exact to 1 %.
type spread struct{ h *hdrhistogram.Histogram }

const (
	spreadUnit   = time.Microsecond
	maxSpread    = int64(24 * time.Hour / spreadUnit)
	spreadDigits = 2
)

func newSpread() spread { return spread{hdrhistogram.New(1, maxSpread, spreadDigits)} }

func (s spread) add(d time.Duration) { s.h.RecordValue(min(int64(max(d, 0)/spreadUnit), maxSpread)) }

func (s spread) count() int { return int(s.h.TotalCount()) }

// quantile returns the smallest duration that is at least a share q of the
// values, or 0 without values.
func (s spread) quantile(q float64) time.Duration {
	n := float64(s.h.TotalCount())
	if n == 0 {
		return 0
	}
	return time.Duration(s.h.ValueAtPercentile(100*max(1, math.Ceil(q*n))/n)) * spreadUnit
}

// liveWindow is the time span that the live view covers.
const liveWindow = 10 * time.Second

// recent holds the durations of the last liveWindow by second. Instants are
// relative to the start of the run.
type recent struct {
	seconds [int(liveWindow / time.Second)]struct {
		second int64
		spread
	}
}

// add adds a duration measured at an instant.
func (r *recent) add(at, d time.Duration) {
	second := int64(at / time.Second)
	slot := &r.seconds[int(second)%len(r.seconds)]
	switch {
	case slot.h == nil:
		slot.second, slot.spread = second, newSpread()
	case slot.second < second:
		slot.second = second
		slot.h.Reset()
	case slot.second > second: // has left the window meanwhile
		return
	}
	slot.add(d)
}

// until returns the durations of the window that ends at an instant.
func (r *recent) until(now time.Duration) spread {
	all := newSpread()
	second := int64(now / time.Second)
	for i := range r.seconds {
		if slot := &r.seconds[i]; slot.h != nil && slot.second > second-int64(len(r.seconds)) {
			all.h.Merge(slot.h) // same bounds, so nothing is dropped
		}
	}
	return all
}

// arrivals counts the rows of a trace that are due by an instant, in a few
// kilobytes regardless of the trace's length.
type arrivals struct {
	counts [4096]int // per step
	step   time.Duration
	rows   int
}

// add takes the arrival of the next row.
func (a *arrivals) add(at time.Duration) {
	if a.step == 0 {
		a.step = 10 * time.Millisecond
	}
	at = max(at, 0)
	for int64(at/a.step) >= int64(len(a.counts)) { // merge pairs of steps
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

// by returns the number of rows due by now, assuming that they are evenly
// spread within a step.
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

// progressed is the progress of a run at an instant.
type progressed struct {
	at                      time.Duration
	due, sent, done, tokens float64
}

// pace turns counts into rates over the window.
type pace struct{ past []progressed }

// add appends the progress and removes all but the last entry from before the
// window.
func (p *pace) add(now progressed) {
	p.past = append(p.past, now)
	for len(p.past) > 2 && p.past[1].at <= now.at-liveWindow {
		p.past = p.past[1:]
	}
}

// rates returns the increase per second over the window, all 0 if no time has
// passed.
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
