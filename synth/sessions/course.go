package sessions

import "math"

// course maps the time of a drawn trace to that of its source, on which lengths,
// sessions and rates depend. A trace longer than the source repeats it with new
// sessions, or holds its last regime: nothing is continued beyond the source.
type course struct {
	hold       bool
	period     float64 // of the source in ms
	gap        float64 // after it, before it begins again
	begin      float64 // time of the drawn trace at which the source begins
	repetition int

	heldFrom    float64 // where the last regime begins
	heldSegment int     // its first segment, window or timestamp
}

func (a *arrivals) newCourse(hold bool) course {
	end := a.FirstMs
	for _, s := range a.Segments {
		end += s.length(a)
	}
	c := course{hold: hold, period: max(a.PeriodMs, end)}
	c.gap = max(0, a.PeriodMs+a.GapMs-c.period)
	if rounding := 1e-3 * end; !a.ByTick && math.Abs(a.PeriodMs-end) < rounding {
		c.period, c.gap = end, a.GapMs
	}
	if !hold {
		return c
	}
	switch {
	case len(a.Timetable) > 0:
		c.heldSegment, c.heldFrom = a.Timetable.held(c.period + c.gap)
	case a.Renewal != nil:
		lengths := make([]float64, len(a.Renewal.Windows))
		for i, w := range a.Renewal.Windows {
			lengths[i] = w[1]
		}
		c.heldSegment, c.heldFrom = startNear(lengths, a.LastMs)
	case len(a.Segments) > 0:
		c.period = end
		lengths := make([]float64, len(a.Segments))
		for i, s := range a.Segments {
			lengths[i] = s.length(a)
		}
		c.heldSegment, c.heldFrom = startNear(lengths, a.LastMs-a.FirstMs)
		c.heldFrom += a.FirstMs
	default:
		c.heldFrom = min(a.LastMs, (1-minLastRegime)*c.period)
	}
	return c
}

// minLastRegime is the minimum share of the source that is its last regime.
const minLastRegime = .1

// startNear returns the window, of consecutive ones with given lengths in ms, that
// starts next to a time, and when it starts. The windows from it on take at least
// minLastRegime of all.
func startNear(lengths []float64, at float64) (window int, start float64) {
	total := sum(lengths)
	begin := 0.0
	for i, length := range lengths {
		if total-begin < minLastRegime*total {
			break
		}
		if math.Abs(begin-at) <= math.Abs(start-at) {
			window, start = i, begin
		}
		begin += length
	}
	return window, start
}

// again begins the source or its last regime again.
func (c *course) again(now float64) {
	c.repetition++
	if c.hold {
		c.begin = now - c.heldFrom
		return
	}
	c.begin = max(now, c.begin+c.period) + c.gap
}

// at returns the time of the source.
func (c *course) at(ms float64) float64 {
	at := ms - c.begin
	if c.hold && at > c.period && c.period > c.heldFrom {
		return c.heldFrom + math.Mod(at-c.heldFrom, c.period-c.heldFrom)
	}
	return min(max(0, at), c.period)
}

// ended reports whether the source ends before a time: its sessions do not continue
// when it is repeated.
func (c *course) ended(ms float64) bool { return !c.hold && c.period > 0 && ms > c.begin+c.period }
