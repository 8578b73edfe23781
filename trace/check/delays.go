package check

import (
	"slices"

	"moontide/trace"
)

// A delay is the time a person takes to read and write, or a tool to run. People
// take seconds to minutes, sometimes hours; agents' tools take tens of
// milliseconds to minutes. The unit is wrong if half of the delays are below
// 100 ms and none reaches a minute, or if nearly all exceed ten minutes.
const (
	shortMedian  = 100.0   // ms; a lower median is too short
	zeroMedian   = 0.2     // ms; a lower median means no delays, not seconds
	shortLongest = 60_000. // ms
	longDelay    = 600_000 // ms; too long if nine of ten are longer
)

// delays finds delays that are not milliseconds.
type delays struct {
	found *findings
	rows  int       // with a delay above 0
	kept  []float64 // the first of them
}

func (c *delays) add(r *trace.Request) {
	if r.Delay.Value <= 0 {
		return
	}
	c.rows++
	if len(c.kept) < maxTimes {
		c.kept = append(c.kept, r.Delay.Value)
	}
}

func (c *delays) finish() {
	if c.rows < minRowsForUnits {
		return
	}
	if n := len(c.kept); n < c.rows {
		c.found.part(c.rows-n, "the unit of delays was checked on the first %d of %d", n, c.rows)
	}
	slices.Sort(c.kept)
	last := len(c.kept) - 1
	soon, median, longest := c.kept[last/10], c.kept[last/2], c.kept[last]
	switch {
	case median >= zeroMedian && median < shortMedian && longest < shortLongest:
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
