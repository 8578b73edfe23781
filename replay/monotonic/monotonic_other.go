//go:build !linux

package monotonic

import "time"

var started = time.Now()

// At is an instant on a clock of this process alone, in nanoseconds: the
// differences between its values hold, and it cannot be compared with another
// process's.
func At(instant time.Time) int64 { return int64(instant.Sub(started)) }
