package fidelity

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"moontide/trace/stats"
)

const (
	maxPairs      = 30
	minPairs      = 4
	resampleCost  = 4 << 20 // requests in all pairs of resamples
	floorQuantile = 0.75
	nearbyRuns    = 2

	// These bound the floors of sources that are so small that anything would pass.
	maxFloor         = 0.3 // of distributions and shares
	maxRelativeFloor = 0.25
)

// noise returns the noise floor of each aspect: that of runs of sessions or of requests,
// which is higher if there are only a few long sessions.
func noise(t *Trace, source *piece, aspects []Aspect) []float64 {
	floors := gapsOf(source, t.bySession(), aspects)
	single := make([][]int, len(t.rows))
	for i := range single {
		single[i] = []int{i}
	}
	for i, floor := range gapsOf(source, single, aspects) {
		most := maxFloor
		if aspects[i].Measure == Relative || aspects[i].Measure == LogRatio {
			most = maxRelativeFloor
		}
		floors[i] = min(max(floors[i], floor), most)
	}
	return floors
}

// gapsOf returns the upper quartile of the gap of each aspect between pairs of resamples
// of sessions, corrected for the number of runs to choose from.
func gapsOf(source *piece, sessions [][]int, aspects []Aspect) []float64 {
	random := stats.NewStream(0, "noise")
	gaps := make([][]float64, len(aspects))
	for range min(max(resampleCost/(2*len(source.at)), minPairs), maxPairs) {
		a, b := source.resample(sessions, random), source.resample(sessions, random)
		for i := range aspects {
			if g := aspects[i].gap([]*piece{a}, []*piece{b}); !math.IsInf(g, 0) {
				gaps[i] = append(gaps[i], g)
			}
		}
	}
	const parts = 2*nearbyRuns + 1
	floors := make([]float64, len(aspects))
	for i, all := range gaps {
		floors[i] = stats.Of(all).Quantile(floorQuantile) * math.Sqrt(parts/(parts-1.))
	}
	return floors
}

// resample draws a piece like p from its sessions.
func (p *piece) resample(sessions [][]int, random *rand.Rand) *piece {
	type drawn struct {
		at  float64
		row int
	}
	var rows []drawn
	length := int(math.Sqrt(float64(len(sessions))))
	start := 0.0
	for place := 0; place < len(sessions); place += length {
		low, high := max(0, place-nearbyRuns*length), min(len(sessions)-length, place+nearbyRuns*length)
		from := high
		if low < high {
			from = low + random.IntN(high-low+1)
		}
		for i := from; i < from+min(length, len(sessions)-place); i++ {
			first := p.at[sessions[i][0]]
			if i > 0 && place+i > from {
				start += first - p.at[sessions[i-1][0]]
			}
			for _, row := range sessions[i] {
				rows = append(rows, drawn{start + p.at[row] - first, row})
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b drawn) int { return cmp.Compare(a.at, b.at) })
	r := &piece{at: make([]float64, len(rows))}
	for i := range r.column {
		r.column[i] = make([]float64, len(rows))
	}
	for i, of := range rows {
		r.at[i] = of.at
		for k := range r.column {
			r.column[k][i] = p.column[k][of.row]
		}
	}
	return r
}
