package monotonic

import (
	"sync"
	"time"
)

// Timer calls a function at a set instant, one call at a time. Its methods may be
// called from any goroutine.
type Timer interface {
	// Set replaces the instant; a call for the old one may already be under way.
	// If at is in the past, the function is called immediately.
	Set(at time.Time)
	// Clear removes the instant.
	Clear()
	// Stop ends the timer and waits for a running call. The function must not call
	// it.
	Stop()
}

// goTimer is a Timer based on Go's timers, which are up to a millisecond late if
// the system's poller counts in milliseconds.
type goTimer struct {
	timer *time.Timer
	mu    sync.Mutex // held during a call
	ended bool
}

// NewGoTimer returns a Timer based on Go's timers. It is up to a millisecond late
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
