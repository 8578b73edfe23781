package monotonic

import (
	"sync"
	"time"
)

// Timer calls a function at the instant that it was set to, one call at a time.
// Its methods may be called from any goroutine.
type Timer interface {
	// Set replaces the instant, for which a call may already be under way. An
	// instant in the past is now.
	Set(at time.Time)
	// Clear removes the instant.
	Clear()
	// Stop ends the timer, and returns when no call is running. It must not be
	// called by the function.
	Stop()
}

// goTimer is a Timer on Go's, which are up to a millisecond late where the
// system's poller counts in milliseconds.
type goTimer struct {
	timer *time.Timer
	mu    sync.Mutex // held during a call
	ended bool
}

// NewGoTimer returns a Timer on Go's timers, which is late by up to a millisecond
// but works in a testing/synctest bubble.
func NewGoTimer(call func()) Timer {
	t := &goTimer{}
	t.timer = time.AfterFunc(time.Hour, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.ended {
			call()
		}
	})
	t.timer.Stop()
	return t
}

func (t *goTimer) Set(at time.Time) { t.timer.Reset(time.Until(at)) }
func (t *goTimer) Clear()           { t.timer.Stop() }

func (t *goTimer) Stop() {
	t.timer.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
}
