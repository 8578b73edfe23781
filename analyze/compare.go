package analyze

import (
	"moontide/trace"
	"moontide/trace/stats"
)

// Comparison holds the distances between two traces. A distance is absent if either
// trace has no such values. It is symmetric.
type Comparison struct {
	// ISL, OSL and Context (observed) are in tokens, Gap (inter-arrival time) in
	// milliseconds.
	ISL, OSL, Context, Gap trace.Opt[Distance]
	// Turns is the number of turns per session; TurnGap is the time from a turn's
	// arrival to the next one's in milliseconds. Inferred sessions are included.
	Turns, TurnGap trace.Opt[Distance]
	// Delay is the think time given in rows, in milliseconds.
	Delay trace.Opt[Distance]
}

// Distance is the distance between two distributions.
type Distance struct {
	KS          float64 // see [stats.KS]: 0..1
	Wasserstein float64 // see [stats.Wasserstein]: in the unit of the values
}

// Compare measures the distances between two traces.
func Compare(a, b *Analysis) Comparison {
	return Comparison{
		ISL:     distance(a.ISL, b.ISL),
		OSL:     distance(a.OSL, b.OSL),
		Context: distanceIn(a.Prefix, b.Prefix, func(p *Prefix) stats.Sample { return p.Context }),
		Gap:     distanceIn(a.Arrivals, b.Arrivals, func(at *Arrivals) stats.Sample { return at.Gaps }),
		Turns:   distanceIn(a.Sessions, b.Sessions, func(s *Sessions) stats.Sample { return s.Turns }),
		TurnGap: distanceIn(a.Sessions, b.Sessions, func(s *Sessions) stats.Sample { return s.Gap }),
		Delay:   distanceIn(a.Sessions, b.Sessions, func(s *Sessions) stats.Sample { return s.Delay }),
	}
}

func distance(a, b stats.Sample) trace.Opt[Distance] {
	if a.Count == 0 || b.Count == 0 {
		return trace.Opt[Distance]{}
	}
	return trace.Some(Distance{KS: stats.KS(a, b), Wasserstein: stats.Wasserstein(a, b)})
}

// distanceIn returns the distance of a part that either analysis may lack.
func distanceIn[P any](a, b *P, of func(*P) stats.Sample) trace.Opt[Distance] {
	if a == nil || b == nil {
		return trace.Opt[Distance]{}
	}
	return distance(of(a), of(b))
}
