//go:build unix

package server

import (
	"syscall"
)

const canTryWrite = true

// tryWrite writes as much as a socket accepts without blocking, possibly
// nothing.
func tryWrite(fd int, b []byte) (int, error) {
	for {
		n, err := send(fd, b)
		switch err {
		case 0:
			return n, nil
		case syscall.EAGAIN:
			return 0, nil
		case syscall.EINTR:
		default:
			return 0, err
		}
	}
}
