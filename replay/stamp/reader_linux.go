package stamp

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reader reads a connection together with the stamps of what it reads.
type reader struct {
	raw syscall.RawConn
	try func(fd uintptr) (done bool) // receive: made once, so that reads do not allocate

	mu      sync.Mutex // of the rest, during a read
	message unix.Msghdr
	part    unix.Iovec
	control Control
	n       int
	errno   syscall.Errno
}

func newConn(tcp *net.TCPConn, clock *sharedClock) (*Conn, error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		tcp.Close()
		return nil, err
	}
	c := &Conn{TCPConn: tcp, clock: clock}
	c.raw, c.try = raw, c.receive
	c.message.Iov = &c.part
	c.message.SetIovlen(1)
	return c, nil
}

// receive reads once, without blocking, and reports whether there was anything to read.
func (r *reader) receive(fd uintptr) (done bool) {
	for {
		r.control.Attach(&r.message)
		n, _, errno := syscall.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&r.message)), 0)
		if errno == syscall.EINTR {
			continue
		}
		r.n, r.errno = int(n), errno
		return errno != syscall.EAGAIN
	}
}

// read reads what is there, or waits until something is. stamp is 0 if there is none.
func (r *reader) read(_ *net.TCPConn, p []byte) (n int, stamp int64, err error) {
	if len(p) == 0 {
		return 0, 0, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.part.Base = &p[0]
	r.part.SetLen(len(p))
	err = r.raw.Read(r.try)
	r.part.Base = nil
	switch {
	case err != nil:
		return 0, 0, &net.OpError{Op: "read", Net: "tcp", Err: err}
	case r.errno != 0:
		return 0, 0, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("recvmsg", r.errno)}
	case r.n == 0:
		return 0, 0, io.EOF
	}
	return r.n, r.control.Stamp(&r.message), nil
}
