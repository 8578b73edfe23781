//go:build unix

package runfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Lock keeps other processes from a file or folder for as long as it is open
// here. It is false where another process has it. File systems that know no
// locks go without.
func Lock(f *os.File) bool {
	return !errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}
