//go:build unix

package replay

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock keeps other processes from writing to a run's file for as long as it is
// open here. File systems that know no locks go without.
func lock(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return errors.New("the run is still going")
	}
	return nil
}
