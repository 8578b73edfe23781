//go:build !linux

package monotonic

import "time"

var started = time.Now()

// At converts an instant to a clock of this process, in nanoseconds. Only
// differences are meaningful; values cannot be compared with those of another
// process.
func At(instant time.Time) int64 { return int64(instant.Sub(started)) }
