//go:build unix

package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// guarded are the flags that keep an open from following a link and from waiting.
const guarded = unix.O_NOFOLLOW | unix.O_NONBLOCK

// Lock locks a file or folder against other processes until f is closed. It
// returns false if another process holds the lock. On file systems without locks
// it returns true.
func Lock(f *os.File) bool {
	return !errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// openDescriptor returns a copy of the open file that a path names, or nil if it does not
// name one.
func openDescriptor(path string) (*os.File, error) {
	folder, digits := filepath.Split(path)
	switch {
	case path == "/dev/stdout":
		digits = "1"
	case path == "/dev/stderr":
		digits = "2"
	case folder != "/dev/fd/" && folder != "/proc/self/fd/":
		return nil, nil
	}
	number, err := strconv.ParseUint(digits, 10, 31)
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return nil, nil
	case err != nil:
		return nil, unix.EBADF
	}
	copied, err := unix.FcntlInt(uintptr(number), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(copied), path), nil
}
