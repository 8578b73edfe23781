//go:build unix && !linux

package server

import (
	"errors"
	"syscall"
)

// send writes to a socket, which package net has set to non-blocking.
func send(fd int, b []byte) (int, syscall.Errno) {
	n, err := syscall.Write(fd, b)
	errno, _ := errors.AsType[syscall.Errno](err)
	return n, errno
}
