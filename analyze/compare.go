package analyze

import (
	"moontide/analyze/dist"
	"moontide/trace"
)

// Comparison is how far apart two traces are. A distance is absent where one of
// them has no such values. It does not depend on which is first.
type Comparison struct {
	// ISL, OSL and Context (the observed one) are distances in tokens, and Gap,
	// the time between successive arrivals, one in milliseconds.
	ISL, OSL, Context, Gap trace.Opt[Distance]
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
		Context: distance(a.contexts(), b.contexts()),
		Gap:     distance(a.gaps(), b.gaps()),
	}
}

func distance(a, b dist.Distribution) trace.Opt[Distance] {
	if a.Count == 0 || b.Count == 0 {
		return trace.Opt[Distance]{}
	}
	return trace.Some(Distance{KS: dist.KS(a, b), Wasserstein: dist.Wasserstein(a, b)})
}

func (a *Analysis) contexts() dist.Distribution {
	if a.Prefix == nil {
		return dist.Distribution{}
	}
	return a.Prefix.Context
}

func (a *Analysis) gaps() dist.Distribution {
	if a.Arrivals == nil {
		return dist.Distribution{}
	}
	return a.Arrivals.Gaps
}
