//go:build !linux

package cluster

import "time"

// ClockError fails: the state of the clock is known on Linux only.
func ClockError() (time.Duration, error) { return 0, errNotSynchronized }
