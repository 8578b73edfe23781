//go:build !linux

package poll

import (
	"errors"
	"net"

	"moontide/trace/stats"
)

// Loop reads connections. It is available on Linux only: New and Adopt fail with
// [errors.ErrUnsupported].
type Loop struct{}

// New starts a loop.
func New() (*Loop, error) { return nil, errors.ErrUnsupported }

// Adopt takes over a TCP connection.
func (l *Loop) Adopt(c net.Conn) (Transport, error) { return nil, errors.ErrUnsupported }

// Delays returns an empty histogram.
func (l *Loop) Delays() *stats.Durations { return new(stats.Durations) }

// Close does nothing.
func (l *Loop) Close() {}
