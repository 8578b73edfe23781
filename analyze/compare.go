package analyze

import (
	"moontide/trace"
	"moontide/trace/stats"
)

// Comparison is how far apart two traces are. A distance is absent where one of
// them has no such values. It does not depend on which is first.
type Comparison struct {
	// ISL, OSL and Context (the observed one) are distances in tokens, and Gap,
	// the time between successive arrivals, one in milliseconds.
	ISL, OSL, Context, Gap trace.Opt[Distance]
	// Turns is the distance of the turns of a session, and TurnGap that of the
	// times from a turn's arrival to the next one's, in milliseconds. Inferred
	// sessions count as given ones do.
	Turns, TurnGap trace.Opt[Distance]
	// Delay is the distance of the think times that rows give, in milliseconds.
	Delay trace.Opt[Distance]
}

// Distance is how far two distributions are apart.
type Distance struct {
	// KS is the two-sample Kolmogorov-Smirnov distance, 0..1: see [dist.KS].
	KS float64
	// Wasserstein is the Wasserstein-1 distance in the unit of the values: see
	// [dist.Wasserstein].
	Wasserstein float64
}

// Compare measures how far b is from a. To compare several traces, compare each
// with the one that they are to be like.
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

// distanceIn is the distance of a part that an analysis may lack.
func distanceIn[P any](a, b *P, of func(*P) stats.Sample) trace.Opt[Distance] {
	if a == nil || b == nil {
		return trace.Opt[Distance]{}
	}
	return distance(of(a), of(b))
}
