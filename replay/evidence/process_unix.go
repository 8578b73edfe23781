//go:build unix && !linux

package evidence

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessCPU returns the CPU time of a process, 0 if it is not known.
func ProcessCPU(pid int) time.Duration {
	var use unix.Rusage
	if pid != os.Getpid() || unix.Getrusage(unix.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
