//go:build unix

package runfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Lock locks a file or folder against other processes until f is closed. It
// returns false if another process holds the lock. On file systems without locks
// it returns true.
func Lock(f *os.File) bool {
	return !errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}
