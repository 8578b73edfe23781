package fidelity

import (
	"math"
	"math/rand/v2"

	"moontide/analyze/cache"
	"moontide/trace/stats"
)

const (
	maxPairs      = 40
	minPairs      = 4
	resampleCost  = 4 << 20 // requests in all pairs of resamples of a kind
	floorQuantile = 0.75

	// These bound the floors of sources that are so small that anything would pass.
	maxFloor         = 0.3 // of distributions and shares
	maxRelativeFloor = 0.5
	maxRateNoise     = 0.25 // of block references
)

// noise returns the noise floor of each aspect, of a source with a number of unique
// blocks.
func noise(t *Trace, source *piece, unique int, aspects []Aspect) []float64 {
	n := len(source.at)
	short, long := max(1, int(math.Sqrt(float64(n)))), max(1, n/runsOfTrace)
	nearby := gapsOf(newRuns(source, short, nearbyRuns), aspects)
	anywhere := gapsOf(newRuns(source, long, runsOfTrace), aspects)
	sessions := gapsOf(newClusters(t, source), aspects)
	rates := gapsOf(newRuns(source, long, nearbyRuns), []Aspect{interArrival(), blockRate})
	floors := make([]float64, len(aspects))
	for i, a := range aspects {
		switch {
		case a.column == gap:
			floors[i] = rates[0]
		case a.clock:
			floors[i] = max(nearby[i], sessions[i])
		default:
			floors[i] = max(nearby[i], min(sessions[i], anywhere[i]))
		}
		if a.share > 0 {
			floors[i] = max(floors[i], slope(source.curve, capacity(a.share, unique), min(rates[1], maxRateNoise)))
		}
		most := maxFloor
		if a.Relative {
			most = maxRelativeFloor
		}
		floors[i] = min(floors[i], most)
	}
	return floors
}

// blockRate is the rate of block references, on which it depends how long an LRU cache
// keeps a block.
var blockRate = Aspect{Relative: true, column: blocks, value: func(p *piece) float64 {
	if p.column[blocks] == nil {
		return math.NaN()
	}
	return sum(p.column[blocks]) / (p.at[len(p.at)-1] - p.at[0])
}}

// slope returns how much the hit rate changes if the capacity, or the rate of references,
// changes by a share.
func slope(c *cache.Curve, capacity int, share float64) float64 {
	if c == nil || math.IsNaN(share) {
		return 0
	}
	rate := func(factor float64) float64 { return c.At(int(factor * float64(capacity))).Rates().Block }
	return max(rate(1+share)-rate(1), rate(1)-rate(1/(1+share)))
}

// gapsOf returns the upper quartile of the gap of each aspect between pairs of
// resamples, corrected for the number of different parts that they are made of.
func gapsOf(r resampler, aspects []Aspect) []float64 {
	gaps := make([][]float64, len(aspects))
	for range r.pairs() {
		a, b := []*piece{r.draw()}, []*piece{r.draw()}
		for i := range aspects {
			if g := aspects[i].gap(a, b); !math.IsNaN(g) && !math.IsInf(g, 0) {
				gaps[i] = append(gaps[i], g)
			}
		}
	}
	floors := make([]float64, len(aspects))
	parts := float64(r.parts())
	for i, all := range gaps {
		floors[i] = stats.Of(all).Quantile(floorQuantile) * math.Sqrt(parts/(parts-1))
	}
	return floors
}

// resampler draws traces like the source from its requests.
type resampler interface {
	draw() *piece
	parts() int // of the source from which a part of a resample may be drawn, at least 2
	pairs() int // to draw
}

// pairsOf returns the number of pairs of resamples of n requests.
func pairsOf(n int) int { return min(max(resampleCost/(2*n), minPairs), maxPairs) }

// runs resamples runs of successive requests.
type runs struct {
	source *piece
	random *rand.Rand
	length int
	reach  int // how far away a run may come from, in runs
}

const (
	runsOfTrace = 20 // long ones
	nearbyRuns  = 2
)

func newRuns(source *piece, length, reach int) *runs {
	return &runs{source, stats.NewStream(0, "noise of runs"), length, reach}
}

func (r *runs) parts() int { return min(2*r.reach+1, runsOfTrace) }

func (r *runs) pairs() int { return pairsOf(len(r.source.at)) }

func (r *runs) draw() *piece {
	n := len(r.source.at)
	requests, at := make([]int32, 0, n), make([]float64, 0, n)
	now := 0.0
	for len(requests) < n {
		place := len(requests)
		low, high := max(0, place-r.reach*r.length), min(n-r.length, place+r.reach*r.length)
		from := high
		if low < high {
			from = low + r.random.IntN(high-low+1)
		}
		for i := from; i < from+r.length && len(requests) < n; i++ {
			if g := r.source.column[gap][i]; len(requests) > 0 && !math.IsNaN(g) {
				now += g
			}
			requests, at = append(requests, int32(i)), append(at, now)
		}
	}
	return r.source.resample(requests, at)
}

// clusters resamples sessions.
type clusters struct {
	source  *piece
	random  *rand.Rand
	session []int32 // number of each request's session, from 0
	count   []int   // how often each session was drawn
}

// newClusters takes a request without a session as one of its own.
func newClusters(t *Trace, source *piece) *clusters {
	c := &clusters{source: source, random: stats.NewStream(0, "noise of sessions")}
	known := map[int32]int32{}
	sessions := int32(0)
	for i := range source.at {
		number, seen := known[t.session[i]]
		if !seen || t.session[i] < 0 {
			number = sessions
			sessions++
			known[t.session[i]] = number
		}
		c.session = append(c.session, number)
	}
	c.count = make([]int, sessions)
	return c
}

func (c *clusters) parts() int { return max(len(c.count), 2) }

func (c *clusters) pairs() int { return pairsOf(len(c.source.at)) }

func (c *clusters) draw() *piece {
	clear(c.count)
	for range c.count {
		c.count[c.random.IntN(len(c.count))]++
	}
	var requests []int32
	var at []float64
	for i, session := range c.session {
		for range c.count[session] {
			requests, at = append(requests, int32(i)), append(at, c.source.at[i])
		}
	}
	return c.source.resample(requests, at)
}
