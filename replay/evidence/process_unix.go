//go:build unix && !linux

package evidence

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessCPU returns the CPU time of a process, or 0 if unknown.
func ProcessCPU(pid int) time.Duration {
	var use unix.Rusage
	if pid != os.Getpid() || unix.Getrusage(unix.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
