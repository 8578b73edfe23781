//go:build unix

package listen

import (
	"math"
	"syscall"
)

// OpenFiles returns the number of files this process may have open, or 0
// if there is no limit.
func OpenFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > math.MaxInt32 {
		return 0
	}
	return int(limit.Cur)
}
