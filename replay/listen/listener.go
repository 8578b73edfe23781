package listen

import (
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Listener accepts connections even if the process has no file descriptors left for a
// while, at which fasthttp would stop serving. It may be closed repeatedly.
type Listener struct {
	net.Listener
	close func() error
}

// NewListener returns ln as a Listener.
func NewListener(ln net.Listener) Listener { return Listener{ln, sync.OnceValue(ln.Close)} }

// Close implements [net.Listener].
func (l Listener) Close() error { return l.close() }

// Accept implements [net.Listener].
func (l Listener) Accept() (net.Conn, error) {
	temporary := []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}
	for {
		c, err := l.Listener.Accept()
		if errno, _ := errors.AsType[syscall.Errno](err); err == nil || !slices.Contains(temporary, errno) {
			return c, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}
