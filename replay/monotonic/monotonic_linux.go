package monotonic

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// looks is the number of readings of both clocks.
const looks = 10

// At converts an instant to CLOCK_MONOTONIC, in nanoseconds. The instant must have
// a monotonic reading, like that of time.Now. Both clocks run at the same rate but
// are read one after the other: of several readings, the one with the shortest
// interruption is right.
func At(instant time.Time) int64 {
	at := int64(math.MaxInt64)
	for range looks {
		var now unix.Timespec
		since := time.Since(instant)
		unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // available on every Linux
		at = min(at, now.Nano()-int64(since))
	}
	return at
}
