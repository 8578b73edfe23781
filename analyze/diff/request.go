package diff

import (
	"time"

	"moontide/analyze/run"
	"moontide/trace"
)

// latency is one of a completed request, in milliseconds.
func (q *request) latency(l run.Latency) trace.Opt[float64] {
	if !q.measured {
		return trace.Opt[float64]{}
	}
	return q.Latency(l)
}

// cachedPart is the share of the prompt that was cached.
func (q *request) cachedPart() trace.Opt[float64] {
	if !q.cachedKnown || q.input <= 0 {
		return trace.Opt[float64]{}
	}
	return trace.Some(float64(q.cached) / float64(q.input))
}

// fingerprint tells requests apart by what they ask for.
func fingerprint(r trace.Request) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211 // of FNV-1a, here over words
	print := uint64(offset)
	mix := func(x uint64) {
		print = (print ^ x) * prime
		print ^= print >> 32
	}
	mix(uint64(r.InputLength))
	mix(uint64(r.OutputLength))
	for _, id := range r.HashIDs {
		mix(id)
	}
	return print
}

// gaps are the times between token chunks of a run's requests, or every so many
// of them.
type gaps struct {
	values []float64
	seen   int
	every  int
}

// mostGaps bounds the gaps that are kept of a run.
const mostGaps = 1 << 22

// addGaps keeps the gaps of a request and returns which they are.
func (r *Run) addGaps(all []time.Duration) (from, to int) {
	g := &r.gaps
	g.every = max(1, g.every)
	for len(g.values)+len(all)/g.every >= mostGaps && len(g.values) > 0 {
		r.thinGaps()
	}
	from = len(g.values)
	for _, gap := range all {
		if g.seen%g.every == 0 {
			g.values = append(g.values, ms(gap))
		}
		g.seen++
	}
	return from, len(g.values)
}

// thinGaps keeps every second of the gaps.
func (r *Run) thinGaps() {
	g := &r.gaps
	g.every *= 2
	half := g.values[:0]
	for i := 0; i < len(g.values); i += 2 {
		half = append(half, g.values[i])
	}
	g.values = half
	for i := range r.requests {
		q := &r.requests[i]
		q.gapsFrom, q.gapsTo = (q.gapsFrom+1)/2, (q.gapsTo+1)/2
	}
}
