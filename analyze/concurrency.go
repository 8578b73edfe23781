package analyze

import (
	"slices"

	"moontide/trace"
)

// Concurrency is the number of requests in flight at a server whose speed does not
// depend on load.
type Concurrency struct {
	// Little is the mean by Little's law: the arrival rate times the mean duration
	// of a request. It is absent if [Arrivals].Rate is.
	Little trace.Opt[float64]
	// Mean is the exact mean from the first arrival to the last completion. It is
	// at most Little, whose rate ignores the time to drain. It is absent if that
	// time is 0.
	Mean trace.Opt[float64]
	// Peak is the maximum number of requests in flight.
	Peak int
}

// Concurrency returns the requests in flight if each takes ttft + (OSL-1) * tpot,
// both in milliseconds and at least 0; an empty answer takes ttft. A request is in
// flight from its arrival until just before its completion.
func (a *Arrivals) Concurrency(ttft, tpot float64) Concurrency {
	var begin, done []float64
	busy, last := 0.0, a.First
	for i := range a.sorted.len() {
		r := a.sorted.row(i)
		takes := ttft + tpot*float64(max(r.osl()-1, 0))
		last = max(last, r.ms+takes)
		if takes == 0 {
			continue // never in flight
		}
		busy += takes
		begin = append(begin, r.ms)
		done = append(done, r.ms+takes)
	}
	slices.Sort(done)
	var c Concurrency
	if last > a.First {
		c.Mean = trace.Some(busy / (last - a.First))
	}
	left := 0
	for i, t := range begin {
		for done[left] <= t { // stops at this request's own completion at the latest
			left++
		}
		c.Peak = max(c.Peak, i+1-left)
	}
	if a.Rate.Set {
		c.Little = trace.Some(a.Rate.Value / 1000 * busy / float64(a.Requests))
	}
	return c
}
