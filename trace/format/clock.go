package format

import (
	"fmt"
	"time"
)

// A trace of a service that was used has a request a minute and more, or else
// pauses. One that has neither is in another unit.
const (
	fewestForUnits = 100
	slowGap        = 60_000.0 // ms
	pauseMeanRatio = 30       // longest gap over mean gap, where there are pauses
)

// clock watches times that a format has in seconds.
type clock struct {
	rows                 int
	first, last, longest float64 // ms
}

func (c *clock) see(ms float64) {
	if c.rows++; c.rows == 1 {
		c.first = ms
	} else {
		c.longest = max(c.longest, ms-c.last)
	}
	c.last = ms
}

// doubt says why the times cannot be seconds; "" where they can.
func (c *clock) doubt() string {
	if c.rows < fewestForUnits {
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
	return fmt.Sprintf("the times are no seconds, most likely: %d rows in %s without a pause; in milliseconds they would be %s",
		c.rows, hours(span), hours(span/1000))
}
