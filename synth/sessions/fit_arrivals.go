package sessions

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// minTimes is the number of distinct timestamps needed to learn from them.
const minTimes = 4 * minRequests

// fitArrivals learns from the times of requests in ms, sorted, the first 0.
func fitArrivals(times []float64) arrivals {
	var a arrivals
	if len(times) > 1 {
		a.MeanGapMs = rounded(times[len(times)-1]/float64(len(times)-1), 3)
	}
	at, requests := distinct(times, nil)
	if len(at) < minTimes {
		return a
	}
	if a.TickMs = gridOf(at); a.TickMs > 0 {
		at, requests = a.fitJitter(at, requests)
	}
	if len(at) < minTimes {
		return arrivals{MeanGapMs: a.MeanGapMs}
	}
	last := at[len(at)-1]
	if a.TickMs > 0 && float64(len(times))*a.TickMs >= minPerTick*last && a.fitTicks(at, requests) {
		return a
	}
	a.fitGaps(at, requests)
	return a
}

// fitTicks learns how many requests each tick has. It reports false if too many
// are empty somewhere.
func (a *arrivals) fitTicks(at []float64, requests []int) bool {
	counts := make([]float64, int(math.Round(at[len(at)-1]/a.TickMs))+1)
	for i, t := range at {
		counts[int(math.Round(t/a.TickMs))] = float64(requests[i])
	}
	amounts := make([]amount, len(counts))
	for i, n := range counts {
		amounts[i] = amount{events: n, of: 1}
	}
	var samples []sample
	before := 0.0
	var segments []segment
	for _, run := range steadyRuns(amounts, countNoise(counts)) {
		mean := rounded(run.sum.rate(), 3)
		if mean < minPerTickInSegment {
			return false
		}
		segments = append(segments, segment{run.sum.events, float64(run.to - run.from), mean})
		for i := run.from; i < run.to; i++ {
			fraction := math.Mod((float64(i)+.5)*math.Phi, 1)
			x := rounded(excess(int(counts[i]), fraction, mean), 6)
			samples = append(samples, sample{[]float64{before, mean, x}, 1})
			before = x
		}
	}
	a.ByTick, a.Segments = true, segments
	a.Steps = fitJoint(samples, stepKnown)
	return true
}

// fitGaps learns the gaps between timestamps and the requests at each.
func (a *arrivals) fitGaps(at []float64, requests []int) {
	gaps := make([]float64, len(at)-1)
	amounts := make([]amount, len(gaps))
	for i := range gaps {
		gaps[i] = at[i+1] - at[i]
		amounts[i] = amount{events: 1, of: gaps[i]}
	}
	var samples []sample
	before := 0.0
	for _, run := range steadyRuns(amounts, gapNoise(gaps)) {
		mean := 1 / run.sum.rate()
		n := 0
		for i := run.from; i < run.to; i++ {
			n += requests[i+1]
			gap := rounded(gaps[i]/mean, 6)
			samples = append(samples, sample{[]float64{before, rounded(mean, 3), gap, float64(requests[i+1])}, 1})
			before = gap
		}
		a.Segments = append(a.Segments, segment{float64(n), float64(run.to - run.from), rounded(mean, 3)})
	}
	a.Steps = fitJoint(samples, stepKnown)
}

// distinct returns the distinct times and the requests at each; counts are those
// of the given times, nil for one each.
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

// maxJitter is the largest number of distinct offsets that count as jitter; more
// are noise.
const maxJitter = 64

// fitJitter moves times to their ticks and keeps those offsets that enough
// requests had.
func (a *arrivals) fitJitter(at []float64, requests []int) ([]float64, []int) {
	counts := make(map[float64]int)
	ticks := make([]float64, len(at))
	for i, t := range at {
		ticks[i] = math.Round(t/a.TickMs) * a.TickMs
		counts[rounded(t-ticks[i], 9)] += requests[i]
	}
	for _, offset := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[offset]; n >= minRequests {
			a.Jitter = append(a.Jitter, jitter{float64(n), offset})
		}
	}
	if len(a.Jitter) == 1 && a.Jitter[0][1] == 0 || len(a.Jitter) > maxJitter {
		a.Jitter = nil
	}
	return distinct(ticks, requests)
}

// gridOf returns the largest tick in ms that divides nearly all times, or 0. It tries round numbers and the most common gap.
func gridOf(at []float64) float64 {
	gaps := make(map[float64]int)
	var common float64
	for i := range len(at) - 1 {
		gap := math.Round(at[i+1] - at[i])
		gaps[gap]++
		if n := gaps[gap]; n > gaps[common] || n == gaps[common] && gap < common {
			common = gap
		}
	}
	candidates := []float64{common, common / 2, common / 3, 60_000, 30_000, 20_000, 15_000, 10_000, 5000, 4000, 3000, 2000, 1000, 500, 250, 200, 100, 50, 20, 10, 5, 2, 1}
	slices.SortFunc(candidates, func(a, b float64) int { return cmp.Compare(b, a) })
	for _, tick := range candidates {
		if tick > 0 && onGrid(at, tick) {
			return tick
		}
	}
	return 0
}

// onGrid reports whether 99 of 100 times lie within a hundredth of a tick.
func onGrid(at []float64, tick float64) bool {
	off := 0
	for _, t := range at {
		if ticks := t / tick; math.Abs(ticks-math.Round(ticks)) > .01 {
			off++
		}
	}
	return 100*off <= len(at)
}
