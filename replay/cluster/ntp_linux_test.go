package cluster

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel says whether NTP keeps the clock, and its largest error in microseconds.
func TestClockError(t *testing.T) {
	for _, test := range []struct {
		state int
		timex unix.Timex
		want  time.Duration
		err   error
	}{
		{unix.TIME_OK, unix.Timex{Maxerror: 1500}, 1500 * time.Microsecond, nil},
		{unix.TIME_INS, unix.Timex{Maxerror: 20}, 20 * time.Microsecond, nil},
		{unix.TIME_ERROR, unix.Timex{Maxerror: 1500}, 0, errNotSynchronized},
		{unix.TIME_OK, unix.Timex{Maxerror: 16_000_000, Status: unix.STA_UNSYNC}, 0, errNotSynchronized},
	} {
		if got, err := clockError(test.state, &test.timex); got != test.want || err != test.err {
			t.Errorf("state %d, %+v: %v, %v; want %v, %v", test.state, test.timex, got, err, test.want, test.err)
		}
	}
}
