package server

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"moontide/replay/monotonic"
)

// fdAlarm is a timer of the kernel's, for which a thread waits. It is on time to
// some ten microseconds, where Go's timers are late by up to a millisecond, and
// it costs no work of Go's scheduler, which takes more than all else that the
// loop does for a few tokens.
type fdAlarm struct {
	fd     int
	closed atomic.Bool
	start  time.Time // and the same instant of CLOCK_MONOTONIC
	mono   int64
	spec   unix.ItimerSpec
}

func newAlarm() alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
	if err != nil {
		return newTimerAlarm()
	}
	start := time.Now()
	return &fdAlarm{fd: fd, start: start, mono: monotonic.At(start)}
}

func (a *fdAlarm) set(t time.Time) { a.setTo(max(1, a.mono+int64(t.Sub(a.start)))) }
func (a *fdAlarm) clear()          { a.setTo(0) }

func (a *fdAlarm) setTo(at int64) {
	if !a.closed.Load() {
		a.arm(at)
	}
}

func (a *fdAlarm) arm(at int64) {
	a.spec.Value = unix.NsecToTimespec(at)
	unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &a.spec, nil) // cannot fail: all of it is valid
}

func (a *fdAlarm) wait() bool {
	var count [8]byte
	for {
		_, err := unix.Read(a.fd, count[:])
		switch {
		case err == unix.EINTR:
		case err == nil && !a.closed.Load():
			return true
		default:
			unix.Close(a.fd)
			return false
		}
	}
}

// close has a last wait return, which frees the descriptor.
func (a *fdAlarm) close() {
	if !a.closed.Swap(true) {
		a.arm(1)
	}
}
