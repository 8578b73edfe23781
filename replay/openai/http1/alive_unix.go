//go:build unix

package http1

import (
	"net"
	"syscall"
)

// alive reports whether an idle connection is usable: the server has neither
// closed it nor sent unrequested bytes. Servers close idle connections at any
// time, and a request on a closed connection would fail.
func alive(c net.Conn) bool {
	raw, ok := c.(syscall.Conn)
	if !ok {
		return true
	}
	rc, err := raw.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = rc.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		quiet = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	})
	return err == nil && quiet
}
