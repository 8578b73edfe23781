//go:build !linux

package poll

import (
	"errors"
	"net"
)

// Loop reads connections. It is available on Linux only: New and Adopt fail with
// [errors.ErrUnsupported].
type Loop struct{}

// New starts a loop.
func New() (*Loop, error) { return nil, errors.ErrUnsupported }

// Adopt takes over a TCP connection.
func (l *Loop) Adopt(c net.Conn) (Transport, error) { return nil, errors.ErrUnsupported }

// Delays returns an empty histogram.
func (l *Loop) Delays() Delays { return Delays{} }

// Close does nothing.
func (l *Loop) Close() {}
