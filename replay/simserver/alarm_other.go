//go:build !linux

package simserver

import "time"

func newAlarm() alarm { return newTimerAlarm() }

var started = time.Now()

// monotonic is a clock of this process alone: the differences between its
// values hold, and it cannot be compared with another process's.
func monotonic() int64 { return int64(time.Since(started)) }
