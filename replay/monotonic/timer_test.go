package monotonic

import (
	"testing"
	"time"
)

// A timer fires at its last set instant, not earlier, and not after it was cleared
// or stopped.
func TestTimers(t *testing.T) {
	for name, newTimer := range map[string]func(func()) Timer{"go": NewGoTimer, "precise": NewTimer} {
		t.Run(name, func(t *testing.T) {
			called := make(chan struct{}, 1)
			timer := newTimer(func() { called <- struct{}{} })
			timer.Set(time.Now().Add(time.Hour))
			for _, d := range []time.Duration{-time.Hour, 0, time.Nanosecond, 100 * time.Microsecond, 5 * time.Millisecond} {
				at := time.Now().Add(d)
				timer.Set(at)
				<-called
				if early := time.Until(at); early > time.Microsecond {
					t.Errorf("%v: called %v too early", d, early)
				}
			}
			at := time.Now().Add(10 * time.Millisecond)
			timer.Set(at)
			timer.Clear()
			inTime := time.Now().Before(at) // not so if the machine stood still
			select {
			case <-called:
				if inTime {
					t.Error("called although it was cleared")
				}
			case <-time.After(20 * time.Millisecond):
			}
			timer.Set(time.Now().Add(time.Hour))
			timer.Stop()
			timer.Set(time.Now()) // does nothing
			timer.Stop()
			select {
			case <-called:
				t.Error("called although it was stopped")
			case <-time.After(5 * time.Millisecond):
			}
		})
	}
}

// Stop waits for a running call.
func TestStopWaits(t *testing.T) {
	for name, newTimer := range map[string]func(func()) Timer{"go": NewGoTimer, "precise": NewTimer} {
		began, ended := make(chan struct{}), false
		timer := newTimer(func() {
			close(began)
			time.Sleep(10 * time.Millisecond)
			ended = true
		})
		timer.Set(time.Now())
		<-began
		timer.Stop()
		if !ended {
			t.Errorf("%s: stopped while a call was running", name)
		}
	}
}
