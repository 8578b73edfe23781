//go:build unix

package atomicfile

import (
	"errors"
	"os"
	"regexp"
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

// descriptors match the names of the files that this process has open.
var descriptors = regexp.MustCompile(`^/dev/(stdout|stderr)$|^(?:/dev|/proc/self)/fd/(\d+)$`)

// openDescriptor returns a copy of the open file that a path names, or nil if it does not
// name one.
func openDescriptor(path string) (*os.File, error) {
	match := descriptors.FindStringSubmatch(path)
	if match == nil {
		return nil, nil
	}
	number := map[string]int{"stdout": 1, "stderr": 2}[match[1]]
	if match[2] != "" {
		var err error
		if number, err = strconv.Atoi(match[2]); err != nil {
			return nil, unix.EBADF
		}
	}
	copied, err := unix.FcntlInt(uintptr(number), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(copied), path), nil
}
