package replay

import "time"

// early is the most by which an alarm may go off before its instant, and so
// the longest that dispatch spins.
const early = 60 * time.Microsecond

// timerAlarm is an alarm of Go's timers. They are late by up to a millisecond
// where the system's poller counts in milliseconds.
type timerAlarm struct{ *time.Timer }

func newTimerAlarm(ring func()) alarm {
	timer := time.AfterFunc(time.Hour, ring)
	timer.Stop()
	return timerAlarm{timer}
}

func (a timerAlarm) Set(at time.Time) { a.Reset(time.Until(at)) }
func (a timerAlarm) Stop()            { a.Timer.Stop() }
