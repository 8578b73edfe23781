package check

import (
	"fmt"
	"slices"
	"time"

	"moontide/trace"
	"moontide/trace/log"
)

// The load of a trace shows whether its timestamps are milliseconds. The largest
// load that a provider has published is 9 million tokens a second for all users
// (DeepSeek, 2025); the busiest public traces have about 50 requests a second, and
// benchmarks fewer. A person at work sends a request every few seconds to
// minutes, and none at night.
const (
	minRowsForUnits = 20 // rows
	// At either of these mean rates a trace is faster than nearly all traces; it may be a
	// low-traffic service with times in seconds.
	highRate   = 100.0 // requests a second
	highTokens = 2e5   // tokens a second, in and out
	// No language model has been served to the public for this long.
	longSpan = 10 * year
)

// units finds timestamps that are not milliseconds, or not times.
func (c *times) units() {
	span := c.high - c.low
	if c.rows < minRowsForUnits || c.changes < minRowsForUnits/2-1 || c.high <= c.low {
		c.span()
		return
	}
	gap := span / float64(c.rows-1)
	rate := float64(c.rows) / span * 1000
	tokens := c.tokens / span * 1000
	switch {
	case rate >= highRate || tokens >= highTokens:
		c.found.whole(TimeUnit, c.rows, "%d rows in %s are %.3g requests/s and %.3g tokens/s; in seconds they would be %.3g requests/s and %.3g tokens/s over %s",
			c.rows, lasting(span), rate, tokens, rate/1000, tokens/1000, lasting(span*1000))
	case tooSlow(c.rows, gap, c.longestGap):
		unit, factor := "microseconds", 1e3
		if tooSlow(c.rows, gap/factor, c.longestGap/factor) {
			unit, factor = "nanoseconds", 1e6
		}
		c.found.whole(TimeUnit, c.rows, "%d rows in %s are %.3g requests/s without a pause; in %s they would be %.3g requests/s over %s",
			c.rows, lasting(span), rate, unit, rate*factor, lasting(span/factor))
	default:
		c.span()
	}
}

// span finds a trace that is too long for any service.
func (c *times) span() {
	if span := c.high - c.low; span >= longSpan {
		c.found.whole(LongSpan, c.rows, "timestamps go from %s to %s ms: %s", ms(c.low), ms(c.high), lasting(span))
	}
}

const (
	day  = 24 * 3600 * 1000.0 // ms
	year = 365.25 * day
)

// lasting formats a duration in ms. time.Duration has no days and no room for
// centuries.
func lasting(ms float64) string {
	switch {
	case ms >= 2*year:
		return fmt.Sprintf("%.1f years", ms/year)
	case ms >= 2*day:
		return fmt.Sprintf("%.3g days", ms/day)
	}
	d := time.Duration(ms * float64(time.Millisecond))
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= 100*unit {
			return d.Round(unit).String()
		}
	}
	return d.String()
}

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
	if r.Delay.Value <= 0 || r.DelayKind == trace.Tool { // tools may be that fast
		return
	}
	if _, measured := r.Raw(log.RecordedKey); measured { // by a capture, in ms
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
		c.found.whole(DelayUnit, c.rows, "half of %d delays are up to %s, the longest is %s; in seconds they would be %s and %s",
			c.rows, lasting(median), lasting(longest), lasting(median*1e3), lasting(longest*1e3))
	case soon >= longDelay:
		unit, factor := "microseconds", 1e3
		if soon/factor >= longDelay {
			unit, factor = "nanoseconds", 1e6
		}
		c.found.whole(DelayUnit, c.rows, "nine of ten of %d delays are at least %s, half of them %s; in %s they would be %s and %s",
			c.rows, lasting(soon), lasting(median), unit, lasting(soon/factor), lasting(median/factor))
	}
}

// tooSlow reports whether arrivals are too slow to be in milliseconds: a production
// trace of many rows has at least one request a minute, or pauses, as at night. The
// gaps between arrivals are in milliseconds.
func tooSlow(rows int, meanGap, longestGap float64) bool {
	const (
		minRows        = 100
		slowGap        = 60_000.0 // ms
		pauseMeanRatio = 30       // longest gap over mean gap in a trace with pauses
	)
	return rows >= minRows && meanGap >= slowGap && longestGap <= pauseMeanRatio*meanGap
}
