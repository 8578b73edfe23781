package stamp

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// clocks simulates the wall clock and the monotonic clock of a time.Time.
type clocks struct {
	now time.Time // with the correct monotonic time
	set time.Duration
	// between is the interruption between the two readings of the next look.
	between time.Duration
	looks   int
}

// look returns a reading whose wall clock is off by c.set.
func (c *clocks) look() reading {
	c.looks++
	torn := c.between
	c.between = 0
	return reading{c.now, c.now.UnixNano() + int64(c.set+torn)}
}

func TestClock(t *testing.T) {
	t.Parallel()
	const us, ms = time.Microsecond, time.Millisecond
	start := time.Now()
	c := &clocks{now: start}
	under := newClock(c.look)
	expect := func(name string, ago, wantAgo time.Duration, kernel bool) {
		t.Helper()
		stamp := c.now.Add(-ago).UnixNano() + int64(c.set)
		at, delay, ok := under.Arrival(stamp)
		if got := c.now.Sub(at); got != wantAgo || ok != kernel || kernel && delay != wantAgo || !kernel && delay != 0 {
			t.Errorf("%s: %v ago, kernel %t, delay %v, want %v ago, kernel %t", name, got, ok, delay, wantAgo, kernel)
		}
	}
	pass := func(d time.Duration) { c.now = c.now.Add(d) }

	expect("just now", 0, 0, true)
	expect("a while ago", 3*ms, 3*ms, true)
	expect("from a processor that is ahead", -5*us, 0, true)
	expect("from the future", -ms, 0, false)
	expect("of another clock", 11*time.Minute, 0, false)
	pass(time.Hour)
	expect("an hour later", 40*ms, 40*ms, true)
	if at, delay, kernel := under.Arrival(0); kernel || delay != 0 || !at.Equal(c.now) {
		t.Errorf("no stamp: %v, %v", at, delay)
	}

	c.between = 3 * ms // interrupted between the two readings
	looks := c.looks
	expect("while interrupted", 2*ms, 2*ms, true)
	if c.looks != looks+2 {
		t.Errorf("%d looks, want a second one", c.looks-looks)
	}

	for _, by := range []time.Duration{-time.Hour, 25 * us, time.Hour} {
		c.set += by
		expect("right behind the setting", ms, 0, false)
		pass(distrustTime - 1)
		expect("in doubt", ms, 0, false)
		pass(1)
		expect("no more in doubt", ms, ms, true)
	}
}

// An interrupted first reading is discarded.
func TestClockBegins(t *testing.T) {
	t.Parallel()
	c := &clocks{now: time.Now(), between: 5 * time.Millisecond}
	under := newClock(c.look)
	if _, delay, kernel := under.Arrival(c.now.Add(-time.Millisecond).UnixNano()); !kernel || delay != time.Millisecond {
		t.Errorf("kernel %t, delay %v", kernel, delay)
	}
}

// However the wall clock is set, no instant is wrong by more than the delay of the
// read. Kernel instants are exact unless the wall clock is set.
func TestClockNeverLies(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := &clocks{now: time.Now()}
		under := newClock(c.look)
		for range rapid.IntRange(1, 30).Draw(t, "reads") {
			c.now = c.now.Add(time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "pass")))
			late := time.Duration(rapid.Int64Range(0, int64(900*time.Millisecond)).Draw(t, "late"))
			stamp := c.now.UnixNano() + int64(c.set)
			truth := c.now
			c.now = c.now.Add(late)
			if rapid.IntRange(0, 3).Draw(t, "set") == 0 { // between arrival and read
				c.set += time.Duration(rapid.Int64Range(-1e12, 1e12).Draw(t, "by"))
			}
			at, _, kernel := under.Arrival(stamp)
			if kernel && at.Sub(truth).Abs() > 2*clockTolerance { // both clocks may be off by the tolerance
				t.Fatalf("the kernel's instant is off by %v", at.Sub(truth))
			}
			if !kernel && !at.Equal(c.now) {
				t.Fatalf("the instant is neither the kernel's nor that of the read")
			}
		}
	})
}
