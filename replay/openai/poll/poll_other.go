//go:build !linux

package poll

import (
	"context"
	"errors"
	"net"
	"time"
)

// Loop reads connections. It is available on Linux only.
type Loop struct{}

// Conn is a connection read by a [Loop].
type Conn struct{}

// New fails with [errors.ErrUnsupported].
func New() (*Loop, error) { return nil, errors.ErrUnsupported }

// Close does nothing.
func (l *Loop) Close() {}

// Delays returns an empty histogram.
func (l *Loop) Delays() Delays { return Delays{} }

// Adopt fails with [errors.ErrUnsupported].
func (l *Loop) Adopt(c net.Conn) (*Conn, error) { return nil, errors.ErrUnsupported }

// Begin does nothing.
func (c *Conn) Begin(Handler, time.Time, ...[]byte) {}

// Wait fails with [errors.ErrUnsupported].
func (c *Conn) Wait(context.Context) (sent time.Time, wrote bool, err error) {
	return time.Time{}, false, errors.ErrUnsupported
}

// SetDeadline does nothing.
func (c *Conn) SetDeadline(time.Time) error { return nil }

// Alive reports false.
func (c *Conn) Alive() bool { return false }

// Close does nothing.
func (c *Conn) Close() error { return nil }
