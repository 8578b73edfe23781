package check

import (
	"slices"

	"moontide/trace"
)

// A delay is the time in which a person reads and writes, or a tool runs. People
// take seconds to minutes, and hours now and then; the tools of an agent take
// tens of milliseconds to minutes. Neither takes less than a tenth of a second
// half of the time and never as much as a minute, nor nearly always ten minutes
// and more.
const (
	shortDelay     = 100.0   // ms; the median is less: too short
	soonestDelay   = 0.2     // ms; the median is less: none rather than seconds
	longestOfShort = 60_000. // ms
	longDelay      = 600_000 // ms; nine of ten are more: too long
)

// delays looks for delays that are not milliseconds.
type delays struct {
	found *ledger
	rows  int       // with a delay above 0
	kept  []float64 // of the first of them
}

func (c *delays) add(r *trace.Request) {
	if r.Delay.Value <= 0 {
		return
	}
	c.rows++
	if len(c.kept) < mostTimes {
		c.kept = append(c.kept, r.Delay.Value)
	}
}

func (c *delays) finish() {
	if c.rows < fewestForUnits {
		return
	}
	if n := len(c.kept); n < c.rows {
		c.found.part(c.rows-n, "the unit of delays was judged by the first %d of %d", n, c.rows)
	}
	slices.Sort(c.kept)
	last := len(c.kept) - 1
	soon, median, longest := c.kept[last/10], c.kept[last/2], c.kept[last]
	switch {
	case median >= soonestDelay && median < shortDelay && longest < longestOfShort:
		c.found.whole(DelayInSeconds, c.rows, "half of %d delays are up to %s, the longest is %s; in seconds they would be %s and %s",
			c.rows, lasting(median), lasting(longest), lasting(median*1e3), lasting(longest*1e3))
	case soon >= longDelay:
		kind, unit, factor := DelayInMicroseconds, "microseconds", 1e3
		if soon/factor >= longDelay {
			kind, unit, factor = DelayInNanoseconds, "nanoseconds", 1e6
		}
		c.found.whole(kind, c.rows, "nine of ten of %d delays are at least %s, half of them %s; in %s they would be %s and %s",
			c.rows, lasting(soon), lasting(median), unit, lasting(soon/factor), lasting(median/factor))
	}
}
