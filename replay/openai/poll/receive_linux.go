package poll

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// receiver reads sockets and the kernel's stamps. A loop uses one receiver for all
// reads, so that they do not allocate.
type receiver struct {
	buf     []byte
	message unix.Msghdr
	part    unix.Iovec
	control [64]byte
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
	r.message.Control = &r.control[0]
	return r
}

// receive reads once, without blocking. stamp is the kernel's stamp of the last
// segment read, in nanoseconds of the wall clock; 0 means none.
func (r *receiver) receive(fd int) (b []byte, stamp int64, err syscall.Errno) {
	r.message.SetControllen(len(r.control))
	// A raw call: the scheduler need not know of a call that does not block.
	n, _, err := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&r.message)), unix.MSG_DONTWAIT)
	if err != 0 {
		return nil, 0, err
	}
	return r.buf[:n], r.stamp(), 0
}

// stamp returns the stamp from the control message of the last read.
func (r *receiver) stamp() int64 {
	const size = unix.SizeofCmsghdr + int(unsafe.Sizeof(unix.Timespec{}))
	header := (*unix.Cmsghdr)(unsafe.Pointer(&r.control[0]))
	if int(r.message.Controllen) < size || header.Level != unix.SOL_SOCKET || header.Type != unix.SCM_TIMESTAMPNS {
		return 0
	}
	return (*unix.Timespec)(unsafe.Pointer(&r.control[unix.SizeofCmsghdr])).Nano()
}
