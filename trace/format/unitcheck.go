package format

import (
	"fmt"
	"time"
)

// A production trace has at least one request a minute, or pauses. A trace with
// neither is in another unit.
const (
	minRowsForUnits = 100
	slowGap         = 60_000.0 // ms
	pauseMeanRatio  = 30       // longest gap over mean gap in a trace with pauses
)

// unitCheck detects milliseconds in a format whose times are seconds.
type unitCheck struct {
	rows                 int
	first, last, longest float64 // ms
}

func (c *unitCheck) add(ms float64) {
	if c.rows++; c.rows == 1 {
		c.first = ms
	} else {
		c.longest = max(c.longest, ms-c.last)
	}
	c.last = ms
}

// doubt returns the reason why the times cannot be seconds, or "".
func (c *unitCheck) doubt() string {
	if c.rows < minRowsForUnits {
		return ""
	}
	span := c.last - c.first
	gap := span / float64(c.rows-1)
	if gap < slowGap || c.longest > pauseMeanRatio*gap {
		return ""
	}
	hours := func(ms float64) string {
		if h := ms / float64(time.Hour/time.Millisecond); h < 48 {
			return fmt.Sprintf("%.3g hours", h)
		} else {
			return fmt.Sprintf("%.3g days", h/24)
		}
	}
	return fmt.Sprintf("times are probably not seconds: %d rows in %s without a pause; in milliseconds they would be %s",
		c.rows, hours(span), hours(span/1000))
}
