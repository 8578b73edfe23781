//go:build unix

package main

import (
	"math"
	"syscall"
)

// openFilesLimit is how many files this process may have open, 0 where there
// is no limit.
func openFilesLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > math.MaxInt32 {
		return 0
	}
	return int(limit.Cur)
}
