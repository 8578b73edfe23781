package poll

import "time"

const (
	// The two clocks are read one after the other. If their offset changed by
	// more than this, the reading may have been interrupted: it is repeated.
	clockTolerance = 20 * time.Microsecond
	// Stamps are not used for so long after the wall clock was set: they may be
	// from before. Nothing waits longer to be read.
	distrustTime = time.Second
	// Some kernels let stamps of another clock through; those look old.
	oldestStamp = 10 * time.Minute
)

// clock converts the kernel's stamps, of the wall clock, to monotonic instants: the
// age of a stamp by the wall clock is subtracted from the monotonic clock. Both run
// at the same pace, so their offset changes only when the wall clock is set.
type clock struct {
	look     func() reading
	base     reading
	offset   time.Duration // wall - monotonic, less that at base
	distrust time.Time     // stamps are not used before
}

// reading is one instant on both clocks.
type reading struct {
	time.Time       // monotonic
	wall      int64 // nanoseconds
}

func readClocks() reading {
	now := time.Now()
	return reading{now, now.UnixNano()}
}

// newClock starts from a reading that another one confirms: an interrupted one
// would look like a change of the wall clock.
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

// arrival returns the instant of a stamp that is read now, and its age. The stamp
// is in nanoseconds of the wall clock, 0 for none.
func (c *clock) arrival(stamp int64) (at Arrival, delay time.Duration) {
	now := c.now()
	delay = time.Duration(now.wall - stamp)
	if stamp == 0 || now.Before(c.distrust) || delay < -clockTolerance || delay > oldestStamp {
		return Arrival{Time: now.Time}, 0
	}
	delay = max(delay, 0)
	return Arrival{Time: now.Add(-delay), Kernel: true}, delay
}

// now reads both clocks and notices that the wall clock was set.
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
	c.distrust = now.Add(distrustTime)
	return now
}

func (c *clock) steady(now reading) bool {
	return (c.offsetAt(now) - c.offset).Abs() <= clockTolerance
}

func (c *clock) offsetAt(now reading) time.Duration {
	return time.Duration(now.wall-c.base.wall) - now.Sub(c.base.Time)
}
