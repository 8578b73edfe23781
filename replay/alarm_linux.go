package replay

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"moontide/replay/monotonic"
)

// exactAlarm is a timer of the kernel's that is waited for like a connection,
// so that it needs no thread. It is set early on purpose, since some ten
// microseconds pass until the kernel has woken a thread and Go a goroutine:
// whoever is woken spins for what is left.
type exactAlarm struct {
	fd    int // the file's; Set and Stop are called by one goroutine
	file  *os.File
	base  time.Time // and the same instant of CLOCK_MONOTONIC, in ns
	mono  int64
	ended chan struct{}
}

// newExactAlarm falls back to a plain timer where the kernel gives none.
func newExactAlarm(ring func()) alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return newTimerAlarm(ring)
	}
	a := &exactAlarm{fd: fd, file: os.NewFile(uintptr(fd), "timerfd"), base: time.Now(), ended: make(chan struct{})}
	a.mono = monotonic.At(a.base)
	go a.run(ring)
	return a
}

// Set arms the timer, which can only fail for arguments that are wrong.
func (a *exactAlarm) Set(at time.Time) {
	mono := a.mono + int64(at.Add(-early).Sub(a.base))
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(mono, 1))} // 0 would disarm it
	unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil)
}

// Stop returns when the goroutine has ended.
func (a *exactAlarm) Stop() {
	a.file.Close()
	<-a.ended
}

func (a *exactAlarm) run(ring func()) {
	defer close(a.ended)
	var times [8]byte
	for {
		if _, err := a.file.Read(times[:]); err != nil { // it is closed
			return
		}
		ring()
	}
}
