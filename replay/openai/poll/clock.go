package poll

import "time"

const (
	// The two clocks are read one after the other, and it may be interrupted
	// between: where they differ by more than this, they are read again.
	clockTolerance = 20 * time.Microsecond
	// A stamp of before the wall clock was set is worthless. Nothing waits
	// longer than this to be read.
	clockDoubt = time.Second
	// An older stamp is none of the wall clock: some kernels let a stamp of
	// another clock through.
	oldestStamp = 10 * time.Minute
)

// clock turns the kernel's stamps, which are of the wall clock, into monotonic
// instants. What a stamp says is how long ago it was, by the wall clock of the
// reader; that is taken off the reader's monotonic clock. Both clocks run at
// the same pace, so the difference between them changes only when the wall
// clock is set; for a while after that no stamp is believed.
type clock struct {
	look   func() reading
	base   reading
	offset time.Duration // wall - monotonic, less what it was at base
	doubt  time.Time     // no stamp is believed before this
}

// reading is what both clocks say at an instant.
type reading struct {
	time.Time       // monotonic
	wall      int64 // nanoseconds
}

func readClocks() reading {
	now := time.Now()
	return reading{now, now.UnixNano()}
}

// newClock starts from a reading that another confirms: one that was
// interrupted would be taken for the wall clock being set.
func newClock(look func() reading) clock {
	c := clock{look: look, base: look()}
	for range 10 {
		again := look()
		if c.steady(again) {
			break
		}
		c.base = again
	}
	return c
}

// arrival returns when something arrived that bears a stamp, in nanoseconds of
// the wall clock, and is read now, and how long ago that was. A stamp of 0 is
// none.
func (c *clock) arrival(stamp int64) (at Arrival, delay time.Duration) {
	now := c.now()
	delay = time.Duration(now.wall - stamp)
	if stamp == 0 || now.Before(c.doubt) || delay < -clockTolerance || delay > oldestStamp {
		return Arrival{Time: now.Time}, 0
	}
	delay = max(delay, 0)
	return Arrival{Time: now.Add(-delay), Kernel: true}, delay
}

// now reads both clocks, and notices when the wall clock was set.
func (c *clock) now() reading {
	now := c.look()
	if c.steady(now) {
		return now
	}
	for range 3 {
		if now = c.look(); c.steady(now) {
			return now
		}
	}
	c.offset = c.offsetAt(now)
	c.doubt = now.Add(clockDoubt)
	return now
}

func (c *clock) steady(now reading) bool {
	return (c.offsetAt(now) - c.offset).Abs() <= clockTolerance
}

func (c *clock) offsetAt(now reading) time.Duration {
	return time.Duration(now.wall-c.base.wall) - now.Sub(c.base.Time)
}
