package stamp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Enable makes the kernel stamp what a socket receives, and so do the connections that a
// listening one accepts. A kernel that refuses passes no stamps on.
func Enable(fd int) { unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) }

// Control is where the kernel writes the stamp of a read.
type Control [64]byte

// Attach makes reads with a message write their stamps to c. Each read shortens the length.
func (c *Control) Attach(m *unix.Msghdr) {
	m.Control = &c[0]
	m.SetControllen(len(c))
}

// Stamp returns the stamp of the last segment that a read with a message took, in
// nanoseconds of the wall clock; 0 means none.
func (c *Control) Stamp(m *unix.Msghdr) int64 {
	const size = unix.SizeofCmsghdr + int(unsafe.Sizeof(unix.Timespec{}))
	header := (*unix.Cmsghdr)(unsafe.Pointer(&c[0]))
	if int(m.Controllen) < size || header.Level != unix.SOL_SOCKET || header.Type != unix.SCM_TIMESTAMPNS {
		return 0
	}
	return (*unix.Timespec)(unsafe.Pointer(&c[unix.SizeofCmsghdr])).Nano()
}
