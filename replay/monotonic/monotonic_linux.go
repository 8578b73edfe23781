package monotonic

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// looks is how often the clocks are read together.
const looks = 10

// At is an instant on CLOCK_MONOTONIC, in nanoseconds. The instant must carry
// Go's own monotonic clock, as that of time.Now does. Both run at the same pace
// but are read one after the other: of several looks the one is right that was
// not interrupted.
func At(instant time.Time) int64 {
	at := int64(math.MaxInt64)
	for range looks {
		var now unix.Timespec
		since := time.Since(instant)
		unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // every Linux has it
		at = min(at, now.Nano()-int64(since))
	}
	return at
}
