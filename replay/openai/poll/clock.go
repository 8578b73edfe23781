package poll

import "time"

const (
	// The two clocks are read one after the other. If their offset changed by more
	// than this, the reading may have been interrupted and is repeated.
	clockTolerance = 20 * time.Microsecond
	// Stamps are ignored for this long after the wall clock is set, because they
	// may predate the change. No segment waits longer than this to be read.
	distrustTime = time.Second
	// Some kernels pass on stamps of another clock, which look older than this.
	oldestStamp = 10 * time.Minute
)

// clock converts the kernel's wall-clock stamps to monotonic instants: it
// subtracts a stamp's age by the wall clock from the current monotonic time. Both
// clocks run at the same rate, so their offset changes only when the wall clock is
// set.
type clock struct {
	look     func() reading
	base     reading
	offset   time.Duration // wall - monotonic, relative to base
	distrust time.Time     // stamps are ignored until then
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

// newClock takes a base reading that a second reading confirms: an interrupted one
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

// arrival returns the instant of a stamp read now, and its age. The stamp is in
// nanoseconds of the wall clock; 0 means none.
func (c *clock) arrival(stamp int64) (at Arrival, delay time.Duration) {
	now := c.now()
	delay = time.Duration(now.wall - stamp)
	if stamp == 0 || now.Before(c.distrust) || delay < -clockTolerance || delay > oldestStamp {
		return Arrival{Time: now.Time}, 0
	}
	delay = max(delay, 0)
	return Arrival{Time: now.Add(-delay), Kernel: true}, delay
}

// now reads both clocks and detects changes of the wall clock.
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
