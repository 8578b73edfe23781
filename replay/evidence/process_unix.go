//go:build unix

package evidence

import (
	"time"

	"golang.org/x/sys/unix"
)

// processCPU is the processor time that this process has taken.
func processCPU() time.Duration {
	var use unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
