//go:build unix

package bench

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lock keeps other processes from driving a sweep in a folder for as long as it
// is open here. File systems that know no locks go without.
func lock(folder *os.File) error {
	if err := unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("another process is driving the sweep in %s", folder.Name())
	}
	return nil
}
