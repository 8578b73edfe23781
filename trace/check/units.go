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
	// From one of these on it is faster than nearly all: a quiet service whose
	// times are seconds looks like that as well.
	highRate   = 100.0
	highTokens = 2e5
	// A trace with longer mean gaps is too slow, if it has many rows and never
	// pauses: a trace of a few people over weeks has nights.
	slowGap        = 60_000.0 // ms
	fewestForSlow  = 100      // rows
	pauseMeanRatio = 30       // longest gap over mean gap, where there are pauses
	// No language model was served to the public for as long as this.
	longSpan = 10 * year
)

// units looks for timestamps that are not milliseconds, or not times.
func (c *times) units() {
	span := c.high - c.low
	if c.rows < fewestForUnits || c.changes < fewestForUnits/2-1 || c.high <= c.low {
		c.span()
		return
	}
	gap := span / float64(c.rows-1)
	rate := 1000 / gap
	tokens := c.tokens / span * 1000
	switch {
	case rate >= highRate || tokens >= highTokens:
		kind := TimeMaybeSeconds
		if rate >= fastRate || tokens >= fastTokens {
			kind = TimeInSeconds
		}
		c.found.whole(kind, c.rows, "%d rows in %s are %.3g requests/s and %.3g tokens/s; in seconds they would be %.3g requests/s and %.3g tokens/s over %s",
			c.rows, lasting(span), rate, tokens, rate/1000, tokens/1000, lasting(span*1000))
	case gap >= slowGap && c.rows >= fewestForSlow && c.longestGap <= pauseMeanRatio*gap:
		kind, unit, factor := TimeInMicroseconds, "microseconds", 1e3
		if gap/factor >= slowGap {
			kind, unit, factor = TimeInNanoseconds, "nanoseconds", 1e6
		}
		c.found.whole(kind, c.rows, "%d rows in %s are %.3g requests/s without a pause; in %s they would be %.3g requests/s over %s",
			c.rows, lasting(span), rate, unit, rate*factor, lasting(span/factor))
	default:
		c.span()
	}
}

// span looks for a trace that no service can have served.
func (c *times) span() {
	if span := c.high - c.low; span >= longSpan {
		c.found.whole(LongSpan, c.rows, "timestamps go from %s to %s ms: %s", ms(c.low), ms(c.high), lasting(span))
	}
}

const (
	day  = 24 * 3600 * 1000.0 // ms
	year = 365.25 * day
)

// lasting spells a time span in ms for a reader: days do not fit a Duration's
// own notation, nor do centuries a Duration.
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
