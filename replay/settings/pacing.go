package settings

import (
	"cmp"
	"math"

	"moontide/trace"
)

// Transform returns the pacing of the rows of the trace. Requests that are drawn have their
// rate already.
func (s *Settings) Transform() trace.Pacing {
	p := trace.Pacing{
		SpreadGrid: s.Pacing.SpreadGrid, Start: s.Pacing.Start, End: s.Pacing.End, Limit: s.Pacing.Limit,
		ThinkScale: s.Pacing.ThinkScale, ToolScale: s.Pacing.ToolScale, MaxThink: s.Pacing.MaxThink,
		Closed: s.Closed, Rebase: true, Speedup: s.Pacing.Speedup, Ramp: s.Pacing.Ramp, Seed: s.Seed,
	}
	rate, sessions := s.Pacing.Rate, s.Pacing.SessionRate.Set
	if sessions {
		rate = s.Pacing.SessionRate
	}
	if rate.Set && (!s.Described() || math.IsInf(rate.Value, 1)) {
		p.Arrivals = &trace.Arrivals{
			Process: cmp.Or(s.Pacing.Arrival, s.process()), Rate: rate.Value, Burstiness: cmp.Or(s.Pacing.Burstiness, 1), Sessions: sessions, Seed: s.Seed,
		}
	}
	return p
}

// process returns the process of arrivals at a rate if none is set.
func (s *Settings) process() string {
	if s.Pacing.Burstiness != 0 && s.Pacing.Burstiness != 1 {
		return trace.Gamma
	}
	return trace.Poisson
}

// Speedup returns the divisor of all times.
func (s *Settings) Speedup() float64 { return cmp.Or(s.Pacing.Speedup, 1) }

// AtOnce reports whether all requests, or sessions, are due at 0.
func (s *Settings) AtOnce() bool {
	return math.IsInf(s.Pacing.Rate.Value, 1) || math.IsInf(s.Pacing.SessionRate.Value, 1)
}

// DrawnRate returns the mean rate of drawn arrivals, in requests per second. It is 0 if the
// arrivals are those of the trace or all at once.
func (s *Settings) DrawnRate() float64 {
	if s.Closed || math.IsInf(s.Pacing.Rate.Value, 1) {
		return 0
	}
	return s.Pacing.Rate.Value * s.Speedup()
}
