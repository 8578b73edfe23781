//go:build unix

package openai

import (
	"net"
	"syscall"
)

// alive reports whether an idle connection can still be used. A server closes
// idle connections when it likes; a request written to one that was closed
// would fail through no fault of the server's. Peeking tells at no cost: there
// must be nothing to read, neither an end nor bytes nobody asked for.
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
