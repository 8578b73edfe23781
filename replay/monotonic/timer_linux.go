package monotonic

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// kernelTimer is a Timer with a dedicated thread. It is tens of microseconds late
// and does not occupy Go's scheduler.
type kernelTimer struct {
	fd    int
	base  time.Time
	mono  int64 // base on CLOCK_MONOTONIC
	ended chan struct{}

	mu      sync.Mutex
	stopped bool
}

// NewTimer returns the most precise Timer of this system: tens of microseconds
// late on Linux, up to a millisecond elsewhere.
func NewTimer(call func()) Timer {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
	if err != nil {
		return NewGoTimer(call)
	}
	t := &kernelTimer{fd: fd, base: time.Now(), ended: make(chan struct{})}
	t.mono = At(t.base)
	go t.run(call)
	return t
}

func (t *kernelTimer) run(call func()) {
	defer close(t.ended)
	var expirations [8]byte
	for {
		if _, err := unix.Read(t.fd, expirations[:]); err == unix.EINTR {
			continue
		}
		t.mu.Lock()
		stopped := t.stopped
		t.mu.Unlock()
		if stopped {
			unix.Close(t.fd)
			return
		}
		call()
	}
}

// Set implements Timer. The kernel interprets 0 as disarmed.
func (t *kernelTimer) Set(at time.Time) { t.arm(max(1, t.mono+int64(at.Sub(t.base))), false) }

// Clear implements Timer.
func (t *kernelTimer) Clear() { t.arm(0, false) }

// Stop implements Timer. A final expiry wakes the thread.
func (t *kernelTimer) Stop() {
	t.arm(1, true)
	<-t.ended
}

func (t *kernelTimer) arm(at int64, stop bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	t.stopped = stop
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(at)}
	unix.TimerfdSettime(t.fd, unix.TFD_TIMER_ABSTIME, &spec, nil) // fails only for invalid arguments
}
