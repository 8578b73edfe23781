package server

import (
	"testing"
	"time"
)

// An alarm goes off at its time and not before, whatever it was set to first.
func TestAlarms(t *testing.T) {
	for name, alarm := range map[string]alarm{"timer": newTimerAlarm(), "system": newAlarm()} {
		t.Run(name, func(t *testing.T) {
			defer alarm.close()
			alarm.set(time.Now().Add(time.Hour))
			for _, d := range []time.Duration{-time.Hour, 0, time.Nanosecond, 100 * time.Microsecond, 3 * time.Millisecond} {
				at := time.Now().Add(d)
				alarm.set(at)
				if !alarm.wait() {
					t.Fatal("it is closed")
				}
				if early := time.Until(at); early > time.Microsecond {
					t.Errorf("%v: it goes off %v too early", d, early)
				}
			}
			alarm.set(time.Now())
			alarm.clear()
			gone := make(chan bool)
			go func() { gone <- alarm.wait() }()
			alarm.set(time.Now().Add(time.Hour))
			alarm.close()
			if <-gone {
				t.Error("a closed alarm went off")
			}
		})
	}
}
