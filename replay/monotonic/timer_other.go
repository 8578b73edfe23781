//go:build !linux

package monotonic

// NewTimer returns the most precise Timer of this system: tens of microseconds
// late on Linux, up to a millisecond elsewhere.
func NewTimer(call func()) Timer { return NewGoTimer(call) }
