package sessions

import (
	"maps"
	"math"
	"slices"

	"moontide/trace"
)

// minTimes is the minimum number of distinct timestamps to learn from.
const minTimes = 4 * minRequests

// fitArrivals learns from sorted request times in ms, the first at 0.
func fitArrivals(times []float64) arrivals {
	var a arrivals
	if len(times) > 1 {
		a.MeanGapMs = rounded(times[len(times)-1]/float64(len(times)-1), 3)
	}
	at, requests := distinct(times, nil)
	if len(at) < minTimes {
		return a
	}
	if a.TickMs = tickOf(at); a.TickMs > 0 {
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

// fitTicks learns the number of requests per tick. It returns false if too many
// ticks are empty somewhere.
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
	for _, run := range steadyRuns(amounts, meanNoise(counts, 1)) {
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

// fitGaps learns the gaps between timestamps and the number of requests at
// each.
func (a *arrivals) fitGaps(at []float64, requests []int) {
	gaps := make([]float64, len(at)-1)
	amounts := make([]amount, len(gaps))
	for i := range gaps {
		gaps[i] = at[i+1] - at[i]
		amounts[i] = amount{events: 1, of: gaps[i]}
	}
	var samples []sample
	before := 0.0
	for _, run := range steadyRuns(amounts, meanNoise(gaps, 2)) {
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

// distinct returns the distinct times and the requests at each. counts holds
// the requests at the given times; nil means one each.
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

// maxJitter is the largest number of distinct offsets treated as jitter. More
// are noise.
const maxJitter = 64

// fitJitter moves times to their ticks and keeps the offsets that enough
// requests have.
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

// tickOf returns the step in ms of the grid of distinct times that start at 0:
// at least 1 if nearly all are whole, 0 if there is no grid.
func tickOf(at []float64) float64 {
	if g, ok := trace.DetectGrid(at); ok {
		return g.Step
	}
	fractions := 0
	for _, t := range at {
		if math.Abs(t-math.Round(t)) > .01 {
			fractions++
		}
	}
	if 100*fractions > len(at) {
		return 0
	}
	return 1
}
