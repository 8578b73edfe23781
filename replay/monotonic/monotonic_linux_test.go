package monotonic_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"moontide/replay/monotonic"
)

// An instant is between two readings of the clock around it.
func TestInstantLiesBetweenLooks(t *testing.T) {
	t.Parallel()
	look := func() int64 {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			t.Fatal(err)
		}
		return now.Nano()
	}
	for range 1000 {
		before := look()
		at := monotonic.At(time.Now())
		if after := look(); at < before || at > after {
			t.Fatalf("%d is not from %d to %d", at, before, after)
		}
	}
}
