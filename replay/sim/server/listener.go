package server

import (
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// listener accepts connections of clients.
type listener struct {
	net.Listener
	close func() error // may be called repeatedly
}

func (l *listener) Close() error { return l.close() }

// Accept waits while the process has no file descriptors left, which must not
// end Serve.
func (l *listener) Accept() (net.Conn, error) {
	const pause = 20 * time.Millisecond
	for {
		c, err := l.Listener.Accept()
		switch {
		case err == nil:
			return newConn(c), nil
		case !isTemporary(err):
			return nil, err
		}
		time.Sleep(pause)
	}
}

// listeners are what a server accepts from.
type listeners struct {
	mu     sync.Mutex
	closed bool
	all    []net.Listener
}

// add adds ln. It returns false after a shutdown.
func (l *listeners) add(ln net.Listener) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.all = append(l.all, ln)
	}
	return !l.closed
}

// close calls first and closes all listeners. A second call has no effect.
func (l *listeners) close(first func()) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	first()
	for _, ln := range l.all {
		err = errors.Join(err, ln.Close())
	}
	return err
}

// isTemporary reports whether a later Accept may succeed.
func isTemporary(err error) bool {
	temporary := []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}
	errno, ok := errors.AsType[syscall.Errno](err)
	return ok && slices.Contains(temporary, errno)
}
