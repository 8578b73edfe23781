package poll

import "time"

const (
	// minRound is the least time between two rounds under load. It lets more
	// connections become ready for each, which saves a fifth of the work.
	// Instants do not suffer, as they are the kernel's.
	minRound = 250 * time.Microsecond
	// Load is at least so many events in a window: 20,000 a second. Below that
	// rounds follow at once, for the sake of those that wait for the end of an
	// answer, such as the next turn of a session.
	loadWindow = 5 * time.Millisecond
	loadEvents = 100
)

// pace decides how long a loop rests between two rounds.
type pace struct {
	began  time.Time // of the last round
	window time.Time // its beginning
	events int       // in it
	loaded bool      // in the window before
}

// round notes that a round begins, with so many events.
func (p *pace) round(now time.Time, events int) {
	p.began = now
	if age := now.Sub(p.window); age >= loadWindow {
		p.loaded = p.events >= loadEvents && age < 2*loadWindow
		p.window, p.events = now, 0
	}
	p.events += events
}

// rest is the time to wait before the next round.
func (p *pace) rest(now time.Time) time.Duration {
	if !p.loaded {
		return 0
	}
	return max(minRound-now.Sub(p.began), 0)
}
