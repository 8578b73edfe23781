package trace

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Pacing selects rows of a trace and sets their arrivals, in the order of its
// fields. The zero value changes nothing.
type Pacing struct {
	// SpreadGrid spreads requests that share a coarse timestamp over one step of
	// the trace's clock, which [Pacing.FindGrid] detects.
	SpreadGrid bool
	// Start and End keep the rows from Start to before End, and make Start the
	// new time 0. An End of 0 is no end.
	Start, End time.Duration
	Limit      int // keeps the first rows; 0 keeps all
	// ThinkScale and ToolScale multiply the delays of their kind, then MaxThink limits
	// think times; 0 is no limit. Delays without a kind are think times.
	ThinkScale, ToolScale Opt[float64]
	MaxThink              time.Duration
	Closed                bool      // makes all arrivals 0, for a closed loop
	Arrivals              *Arrivals // replaces the arrivals; nil keeps the trace's
	Sessions              bool      // Arrivals are those of sessions: see [RetimeSessions]
	Rebase                bool      // makes the first arrival 0
	Speedup               float64   // divides all times, also those set above; 0 is 1
	// Ramp raises the rate linearly from 0 over this time.
	Ramp time.Duration
	Seed uint64 // of SpreadGrid

	grid *Grid
}

// Check returns an error if p is invalid.
func (p Pacing) Check() error {
	switch {
	case p.Start < 0 || p.End < 0 || p.End > 0 && p.End <= p.Start:
		return fmt.Errorf("the window from %v to %v is empty", p.Start, p.End)
	case p.Limit < 0:
		return fmt.Errorf("the limit on rows is negative: %d", p.Limit)
	case p.Speedup < 0 || math.IsNaN(p.Speedup) || math.IsInf(p.Speedup, 0):
		return fmt.Errorf("the speedup is not a positive number: %v", p.Speedup)
	case !isScale(p.ThinkScale) || !isScale(p.ToolScale):
		return fmt.Errorf("the scales of think and tool times are not 0 or positive: %v, %v", p.ThinkScale.Value, p.ToolScale.Value)
	case p.MaxThink < 0:
		return fmt.Errorf("the limit on think times is negative: %v", p.MaxThink)
	case p.Ramp < 0:
		return fmt.Errorf("the ramp is negative: %v", p.Ramp)
	case p.Arrivals != nil && p.SpreadGrid:
		return fmt.Errorf("the arrivals are either replaced or spread over their grid, not both")
	case p.Closed && (p.Arrivals != nil || p.SpreadGrid || p.Ramp > 0):
		return fmt.Errorf("a closed loop has no arrivals to replace, spread or ramp")
	case p.Arrivals.AtOnce() && p.Ramp > 0:
		return fmt.Errorf("an infinite arrival rate cannot be ramped")
	case p.Arrivals != nil:
		return p.Arrivals.Check()
	}
	return nil
}

func isScale(x Opt[float64]) bool { return x.Value >= 0 && !math.IsInf(x.Value, 0) }

// or returns the value, or another if it is absent.
func (o Opt[T]) or(other T) T {
	if o.Set {
		return o.Value
	}
	return other
}

// FindGrid reads the trace to find the grid of its timestamps, for SpreadGrid.
// found is false if there is none.
func (p *Pacing) FindGrid(ctx context.Context, reqs Requests) (found bool, err error) {
	var d GridDetector
	for r, err := range Until(ctx, reqs) {
		if err != nil {
			return false, err
		}
		d.Add(r)
	}
	g, _, ok := d.Grid()
	if ok {
		p.grid = &g
	}
	return ok, nil
}

// Select spreads the grid and keeps the rows of the window.
func (p Pacing) Select(reqs Requests) Requests {
	if p.grid != nil {
		reqs = Spread(reqs, *p.grid, p.Seed)
	}
	if p.Start > 0 || p.End > 0 {
		end := math.Inf(1)
		if p.End > 0 {
			end = MS(p.End)
		}
		reqs = Window(reqs, MS(p.Start), end)
	}
	return reqs
}

// Pace keeps the first rows, sets delays and arrivals, and puts the rows in the order in
// which they would be sent: see [SendOrder].
func (p Pacing) Pace(reqs Requests) Requests {
	if p.Limit > 0 {
		reqs = Take(reqs, p.Limit)
	}
	if p.rescales() {
		reqs = ScaleDelays(reqs, p.ThinkScale.or(1), p.ToolScale.or(1), MS(p.MaxThink))
	}
	switch {
	case p.Arrivals != nil && p.Sessions:
		reqs = RetimeSessions(reqs, *p.Arrivals)
	case p.Closed || p.Arrivals.AtOnce():
		reqs = AtOnce(reqs)
	case p.Arrivals != nil:
		reqs = Retime(reqs, *p.Arrivals)
	case p.Rebase:
		reqs = Rebase(reqs)
	}
	if p.Speedup > 0 && p.Speedup != 1 {
		reqs = Speed(reqs, p.Speedup)
	}
	if p.Ramp > 0 {
		reqs = Ramp(reqs, MS(p.Ramp))
	}
	if p.Retimes() {
		reqs = SendOrder(reqs)
	}
	return reqs
}

// Retimes reports whether the times of the rows change relative to each other, so
// that the order in which they are sent may change.
func (p Pacing) Retimes() bool {
	return !p.Closed && (p.Arrivals != nil || p.rescales() || p.Ramp > 0 || p.Speedup > 0 && p.Speedup != 1)
}

func (p Pacing) rescales() bool { return p.ThinkScale.Set || p.ToolScale.Set || p.MaxThink > 0 }

// Apply is [Pacing.Select] followed by [Pacing.Pace].
func (p Pacing) Apply(reqs Requests) Requests { return p.Pace(p.Select(reqs)) }
