package poll

import "time"

const (
	// gather is the least time between two rounds under load. It lets more
	// connections become ready for each, which saves a fifth of the work;
	// instants do not suffer, since they are the kernel's.
	gather = 250 * time.Microsecond
	// paceWindow is the time over which load is measured.
	paceWindow = 5 * time.Millisecond
	// paceLoad is how many events in a window are load: 20,000 a second.
	// Below, rounds follow at once, and what waits for an end of an answer,
	// such as the next turn of a session, waits no longer than it must.
	paceLoad = 100
)

// pace decides when a loop rests between two rounds.
type pace struct {
	began  time.Time // of the last round
	window time.Time // its beginning
	events int       // in it
	loaded bool      // as was the window before
}

// round notes a round that begins, with so many events.
func (p *pace) round(now time.Time, events int) {
	p.began = now
	if age := now.Sub(p.window); age >= paceWindow {
		p.loaded = p.events >= paceLoad && age < 2*paceWindow
		p.window, p.events = now, 0
	}
	p.events += events
}

// rest is how long there should be no round.
func (p *pace) rest(now time.Time) time.Duration {
	if !p.loaded {
		return 0
	}
	return max(gather-now.Sub(p.began), 0)
}
