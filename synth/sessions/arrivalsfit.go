package sessions

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// minTimes is how many distinct timestamps it takes to learn from them.
const minTimes = 4 * minCell

// fitArrivals learns from the times of requests in ms, sorted, the first 0.
func fitArrivals(times []float64) arrivals {
	var a arrivals
	if len(times) > 1 {
		a.even = rounded(times[len(times)-1]/float64(len(times)-1), 3)
	}
	at, requests := distinct(times, nil)
	if len(at) < minTimes {
		return a
	}
	if a.tick = gridOf(at); a.tick > 0 {
		at, requests = a.fitJitter(at, requests)
	}
	if len(at) < minTimes {
		return arrivals{even: a.even}
	}
	last := at[len(at)-1]
	if a.tick > 0 && float64(len(times))*a.tick >= fewestCounted*last && a.fitTicks(at, requests) {
		return a
	}
	a.fitSteps(at, requests)
	return a
}

// fitTicks learns how many requests each tick has. It cannot if there are too
// many empty ones somewhere.
func (a *arrivals) fitTicks(at []float64, requests []int) bool {
	counts := make([]amount, int(math.Round(at[len(at)-1]/a.tick))+1)
	for i := range counts {
		counts[i].of = 1
	}
	for i, t := range at {
		counts[int(math.Round(t/a.tick))].events = float64(requests[i])
	}
	var samples []sample
	before := 0.0
	var pieces []piece
	for _, p := range steadyPieces(counts, poissonNoise) {
		mean := rounded(p.rate(), 3)
		if mean < fewestInPiece {
			return false
		}
		pieces = append(pieces, piece{int(p.sum.events), p.to - p.from, mean})
		for i := p.from; i < p.to; i++ {
			part := math.Mod((float64(i)+.5)*math.Phi, 1)
			x := rounded(excess(int(counts[i].events), part, mean), 6)
			samples = append(samples, sample{[]float64{before, mean, x}, 1})
			before = x
		}
	}
	a.counted, a.pieces = true, pieces
	a.steps = fitJoint(samples, stepKnown)
	return true
}

// fitSteps learns how far timestamps are from each other, and how many requests
// come at each.
func (a *arrivals) fitSteps(at []float64, requests []int) {
	steps := make([]amount, len(at)-1)
	for i := range steps {
		steps[i] = amount{events: 1, of: at[i+1] - at[i]}
	}
	var samples []sample
	before := 0.0
	for _, p := range steadyPieces(steps, gapNoise) {
		mean := 1 / p.rate()
		n := 0
		for i := p.from; i < p.to; i++ {
			n += requests[i+1]
			step := rounded(steps[i].of/mean, 6)
			samples = append(samples, sample{[]float64{before, rounded(mean, 3), step, float64(requests[i+1])}, 1})
			before = step
		}
		a.pieces = append(a.pieces, piece{n, p.to - p.from, rounded(mean, 3)})
	}
	a.steps = fitJoint(samples, stepKnown)
}

// distinct returns the different times and how many requests each has; counts
// are those of the given times, nil for one each.
func distinct(times []float64, counts []int) (at []float64, requests []int) {
	for i, t := range times {
		n := 1
		if counts != nil {
			n = counts[i]
		}
		if last := len(at) - 1; last >= 0 && at[last] == t {
			requests[last] += n
			continue
		}
		at, requests = append(at, t), append(requests, n)
	}
	return at, requests
}

// fitJitter moves times to their ticks and keeps how far off they were, as far
// as enough requests were so.
func (a *arrivals) fitJitter(at []float64, requests []int) ([]float64, []int) {
	offs := make(map[float64]int)
	ticks := make([]float64, len(at))
	for i, t := range at {
		ticks[i] = math.Round(t/a.tick) * a.tick
		offs[rounded(t-ticks[i], 9)] += requests[i]
	}
	for _, off := range slices.Sorted(maps.Keys(offs)) {
		if n := offs[off]; n >= minCell {
			a.jitter = append(a.jitter, bin{count: n, weight: float64(n), low: off, high: off, mean: off})
		}
	}
	if len(a.jitter) == 1 && a.jitter[0].low == 0 || len(a.jitter) > maxJitter {
		a.jitter = nil
	}
	return distinct(ticks, requests)
}

// maxJitter is how many different values are a jitter's. More are noise.
const maxJitter = 64

// gridOf returns the largest step of which nearly all times are multiples, in
// ms, or 0. It tries round numbers and the commonest step.
func gridOf(at []float64) float64 {
	steps := make(map[float64]int)
	var commonest float64
	for i := range len(at) - 1 {
		s := math.Round(at[i+1] - at[i])
		steps[s]++
		if n := steps[s]; n > steps[commonest] || n == steps[commonest] && s < commonest {
			commonest = s
		}
	}
	candidates := []float64{commonest, commonest / 2, commonest / 3, 60_000, 30_000, 20_000, 15_000, 10_000, 5000, 4000, 3000, 2000, 1000, 500, 250, 200, 100, 50, 20, 10, 5, 2, 1}
	slices.SortFunc(candidates, func(a, b float64) int { return cmp.Compare(b, a) })
	for _, step := range candidates {
		if step > 0 && onGrid(at, step) {
			return step
		}
	}
	return 0
}

// onGrid tells whether 99 of 100 times lie within a hundredth of a tick.
func onGrid(at []float64, step float64) bool {
	off := 0
	for _, t := range at {
		if ticks := t / step; math.Abs(ticks-math.Round(ticks)) > .01 {
			off++
		}
	}
	return 100*off <= len(at)
}
