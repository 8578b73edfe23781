//go:build !linux

package replay

// newExactAlarm is an alarm as exact as this system has one.
func newExactAlarm(ring func()) alarm { return newTimerAlarm(ring) }
