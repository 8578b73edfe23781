package stamp

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

// Clock converts the kernel's wall-clock stamps to monotonic instants: it
// subtracts a stamp's age by the wall clock from the current monotonic time. Both
// clocks run at the same rate, so their offset changes only when the wall clock is
// set. It is not safe for concurrent use.
type Clock struct {
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

// NewClock returns a clock.
func NewClock() Clock { return newClock(readClocks) }

// newClock takes a base reading that a second reading confirms: an interrupted one
// would look like a change of the wall clock.
func newClock(look func() reading) Clock {
	c := Clock{look: look, base: look()}
	for range 10 {
		again := look()
		if c.steady(again) {
			break
		}
		c.base = again
	}
	return c
}

// Arrival returns the instant of a stamp read now, and its age. The stamp is in
// nanoseconds of the wall clock; 0 means none. If it cannot be used, kernel is false and
// the instant is now.
func (c *Clock) Arrival(stamp int64) (at time.Time, age time.Duration, kernel bool) {
	now := c.now()
	age = time.Duration(now.wall - stamp)
	if stamp == 0 || now.Before(c.distrust) || age < -clockTolerance || age > oldestStamp {
		return now.Time, 0, false
	}
	age = max(age, 0)
	return now.Add(-age), age, true
}

// Now returns the current time.
func (c *Clock) Now() time.Time { return c.now().Time }

// now reads both clocks and detects changes of the wall clock.
func (c *Clock) now() reading {
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

func (c *Clock) steady(now reading) bool {
	return (c.offsetAt(now) - c.offset).Abs() <= clockTolerance
}

func (c *Clock) offsetAt(now reading) time.Duration {
	return time.Duration(now.wall-c.base.wall) - now.Sub(c.base.Time)
}
