package check

import (
	"fmt"
	"time"
)

// What a trace offers when its timestamps are milliseconds tells whether they
// are. The largest load that a provider has published is 9 million tokens a
// second for all of its users (DeepSeek, 2025), the busiest public traces come
// to some 50 requests a second, and what benchmarks offer lies below. A person
// at work asks every few seconds to minutes, with nights in between.
const (
	fewestForUnits = 20 // rows
	// From one of these on, all day long, a trace is too fast.
	fastRate   = 1000.0 // requests a second
	fastTokens = 2e6    // tokens a second, in and out
	// A trace with longer mean gaps is too slow, if it has many rows and never
	// pauses: a trace of a few people over weeks has nights.
	slowGap        = 60_000.0 // ms
	fewestForSlow  = 100      // rows
	pauseMeanRatio = 30       // longest gap over mean gap, where there are pauses
)

// units looks for timestamps that are not milliseconds.
func (c *times) units() {
	span := c.high - c.low
	if c.rows < fewestForUnits || c.changes < fewestForUnits/2-1 || c.high <= c.low {
		return
	}
	gap := span / float64(c.rows-1)
	rate := 1000 / gap
	tokens := c.tokens / span * 1000
	switch {
	case rate >= fastRate || tokens >= fastTokens:
		c.found.whole(TimeInSeconds, c.rows, "%d rows in %s are %.3g requests/s and %.3g tokens/s; in seconds they would be %.3g requests/s over %s",
			c.rows, lasting(span), rate, tokens, rate/1000, lasting(span*1000))
	case gap >= slowGap && c.rows >= fewestForSlow && c.longestGap <= pauseMeanRatio*gap:
		kind, unit, factor := TimeInMicroseconds, "microseconds", 1e3
		if gap/factor >= slowGap {
			kind, unit, factor = TimeInNanoseconds, "nanoseconds", 1e6
		}
		c.found.whole(kind, c.rows, "%d rows in %s are %.3g requests/s without a pause; in %s they would be %.3g requests/s over %s",
			c.rows, lasting(span), rate, unit, rate*factor, lasting(span/factor))
	}
}

// lasting spells a time span in ms for a reader: days do not fit a Duration's
// own notation, nor do centuries a Duration.
func lasting(ms float64) string {
	const day = 24 * 3600 * 1000
	if ms >= 2*day {
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
