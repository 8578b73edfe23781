package poll

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"moontide/replay/stamp"
)

// receiver reads sockets and the kernel's stamps. A loop uses one receiver for all
// reads, so that they do not allocate.
type receiver struct {
	buf     []byte
	message unix.Msghdr
	part    unix.Iovec
	control stamp.Control
}

// receiveBuffer is how much of a connection is read before the others have a turn,
// in bytes.
const receiveBuffer = 16 << 10

func newReceiver() *receiver {
	r := &receiver{buf: make([]byte, receiveBuffer)}
	r.part.Base = &r.buf[0]
	r.part.SetLen(len(r.buf))
	r.message.Iov = &r.part
	r.message.SetIovlen(1)
	return r
}

// receive reads once, without blocking. at is the kernel's stamp of the last
// segment read, in nanoseconds of the wall clock; 0 means none.
func (r *receiver) receive(fd int) (b []byte, at int64, err syscall.Errno) {
	r.control.Attach(&r.message)
	// A raw call: the scheduler need not know of a call that does not block.
	n, _, err := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&r.message)), unix.MSG_DONTWAIT)
	if err != 0 {
		return nil, 0, err
	}
	return r.buf[:n], r.control.Stamp(&r.message), 0
}
