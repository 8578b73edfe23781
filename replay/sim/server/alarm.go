package server

import (
	"sync"
	"time"
)

// alarm wakes one goroutine at a time that may change while it waits.
type alarm interface {
	// set has the alarm go off at t, at once if t has passed. It, clear and
	// close are for one goroutine at a time.
	set(t time.Time)
	// clear has it not go off.
	clear()
	// wait returns true when the alarm has gone off, and false after close; it
	// has to be called until it does.
	wait() bool
	close()
}

// timerAlarm is an alarm of Go's timers, which are up to a millisecond late
// where the system's poller counts in milliseconds.
type timerAlarm struct {
	timer  *time.Timer
	closed chan struct{}
	once   sync.Once
}

func newTimerAlarm() alarm {
	a := &timerAlarm{timer: time.NewTimer(time.Hour), closed: make(chan struct{})}
	a.clear()
	return a
}

func (a *timerAlarm) set(t time.Time) { a.timer.Reset(time.Until(t)) }
func (a *timerAlarm) clear()          { a.timer.Stop() }

func (a *timerAlarm) wait() bool {
	select {
	case <-a.timer.C:
		return true
	case <-a.closed:
		return false
	}
}

func (a *timerAlarm) close() {
	a.timer.Stop()
	a.once.Do(func() { close(a.closed) })
}
