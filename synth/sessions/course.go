package sessions

import (
	"math"

	"moontide/trace/stats"
)

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
	if !hold {
		return c
	}
	switch {
	case len(a.Timetable) > 0:
		c.heldSegment, c.heldFrom = a.Timetable.held(c.period + c.gap)
	case a.Renewal != nil:
		c.heldSegment, c.heldFrom = lastRegime(a.Renewal.windows())
	case len(a.Segments) > 0:
		c.period = end
		windows := make([]stats.Amount, len(a.Segments))
		for i, s := range a.Segments {
			windows[i] = stats.Amount{Events: s[0], Of: s.length(a)}
		}
		c.heldSegment, c.heldFrom = lastRegime(windows)
		c.heldFrom += a.FirstMs
	default:
		c.heldFrom = (1 - minLastRegime) * c.period
	}
	return c
}

// minLastRegime is the minimum share of the source that is its last regime.
const minLastRegime = .1

// lastRegime returns the first window of the last regime and its time: the last
// stretches of a steady rate that take at least a tenth of the source.
func lastRegime(windows []stats.Amount) (first int, from float64) {
	end := 0.0
	for _, w := range windows {
		end += w.Of
	}
	from, first = end, len(windows)
	runs := stats.SteadyRuns(stats.Varying{Amounts: windows, Noise: 1}, 0)
	for i := len(runs) - 1; i >= 0 && end-from < minLastRegime*end; i-- {
		first = runs[i].From
		from -= runs[i].Sum.Of
	}
	return first, max(0, from)
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
