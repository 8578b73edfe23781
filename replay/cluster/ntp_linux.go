package cluster

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// ClockError returns the largest error of the time of day, as the kernel keeps it. It
// fails if the kernel says that the clock is not synchronized.
func ClockError() (time.Duration, error) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return 0, fmt.Errorf("reading the state of the clock: %w", err)
	}
	return clockError(state, &t)
}

func clockError(state int, t *unix.Timex) (time.Duration, error) {
	if state == unix.TIME_ERROR || t.Status&unix.STA_UNSYNC != 0 {
		return 0, errNotSynchronized
	}
	return time.Duration(t.Maxerror) * time.Microsecond, nil
}
