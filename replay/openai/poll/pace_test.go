package poll

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	t.Parallel()
	var p pace
	now := time.Now()
	// run simulates events at a constant rate for a second, and returns the number
	// of rounds and the longest rest.
	run := func(rate int) (rounds int, longest time.Duration) {
		gap := time.Second / time.Duration(rate)
		next, end := now.Add(gap), now.Add(time.Second)
		for now.Before(end) {
			rest := p.rest(now)
			longest = max(longest, rest)
			now = now.Add(rest)
			if now.Before(next) {
				now = next
			}
			events := 0
			for ; !next.After(now); next = next.Add(gap) {
				events++
			}
			p.round(now, events)
			rounds++
		}
		return rounds, longest
	}
	if rounds, longest := run(10_000); longest > 0 || rounds < 9_999 {
		t.Errorf("of 10,000 events %d rounds, rest of %v", rounds, longest)
	}
	if rounds, longest := run(100_000); longest > minRound || rounds > 4_500 {
		t.Errorf("of 100,000 events %d rounds, rest of %v", rounds, longest)
	}
	run(100)
	if rounds, longest := run(100); longest > 0 || rounds < 99 {
		t.Errorf("of 100 events %d rounds, rest of %v", rounds, longest)
	}
	p.round(now, 1000)
	if now = now.Add(time.Hour); p.rest(now) > 0 {
		t.Error("it rests after an hour of silence")
	}
	p.round(now, 1)
	if p.rest(now) > 0 {
		t.Error("load of an hour ago counts")
	}
}
