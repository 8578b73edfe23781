package sessions

import (
	"maps"
	"math"
	"slices"

	"moontide/trace"
	"moontide/trace/stats"
)

// minTimes is the minimum number of distinct timestamps with a grid, and minGaps of
// gaps to learn from.
const (
	minTimes = 4 * minRequests
	minGaps  = minRequests
)

// fitArrivals learns from sorted times in ms of a source from 0 to period. grid has
// the times of all of its requests, which tell its grid.
func fitArrivals(times, grid []float64, period float64) arrivals {
	a := arrivals{PeriodMs: rounded(period, 4), FirstMs: rounded(times[0], 2)}
	at, requests := distinct(times, nil)
	ticks, _ := distinct(grid, nil)
	if len(ticks) >= minTimes {
		if a.TickMs = tickOf(ticks); a.TickMs > 0 {
			at, requests = a.fitJitter(at, requests)
		}
	}
	switch {
	case len(times) < minRequests && (len(times) == 1 || len(at) > 1) || len(grid) < minRequests:
		// As many of them as in the source: the gaps between a few starts tell no rate.
		a.MeanGapMs = rounded((period+gapBetween(grid))/float64(len(times)), 3)
	case len(at)-1 < minGaps:
		a.fitFew(at, len(times), len(grid))
	case a.TickMs > 0 && len(at) >= minTimes && float64(len(times))*a.TickMs >= minPerTick*at[len(at)-1] && a.fitTicks(at, requests):
	default:
		a.fitGaps(at, requests)
	}
	return a
}

// fitFew learns the mean number of requests at a timestamp and the mean gap, which
// is all that a few timestamps tell. If there is only one, all come at once, and again
// after the period. The starts are those of sessions with that many requests.
func (a *arrivals) fitFew(at []float64, starts, requests int) {
	gap := a.PeriodMs
	batch := bin{float64(requests), float64(requests), float64(starts)}
	if len(at) > 1 {
		gap = gapBetween(at)
		mean := rounded(float64(starts)/float64(len(at)), 3)
		batch = bin{float64(requests), float64(requests), .5, max(2*mean, 1.5), max(mean, 1)}
		if starts == len(at) {
			batch = bin{float64(requests), float64(requests), 1}
		}
	}
	if gap < 1e-3 {
		return
	}
	a.Segments = []segment{{float64(requests), float64(len(at) - 1), rounded(gap, 3)}}
	a.Steps = joint{
		{Leaves: [][]bin{{{float64(requests), float64(requests), 1}}}},
		{Leaves: [][]bin{{batch}}},
	}
}

// fitTicks learns the number of requests per tick. It returns false if too many
// ticks are empty somewhere.
func (a *arrivals) fitTicks(at []float64, requests []int) bool {
	last := max(at[len(at)-1], a.PeriodMs-a.TickMs)
	counts := make([]float64, int(math.Round(last/a.TickMs))+1)
	for i, t := range at {
		counts[int(math.Round(t/a.TickMs))] = float64(requests[i])
	}
	amounts := make([]stats.Amount, len(counts))
	for i, n := range counts {
		amounts[i] = stats.Amount{Events: n, Of: 1}
	}
	even := slices.Min(counts) == slices.Max(counts)
	var samples []sample
	before := 0.0
	var segments []segment
	for _, run := range windows(stats.Varying{Amounts: amounts, Noise: stats.MeanNoise(counts, 1)}) {
		mean := rounded(run.Sum.Rate(), 3)
		if mean < minPerTickInSegment {
			return false
		}
		segments = append(segments, segment{run.Sum.Events, float64(run.To - run.From), mean})
		for i := run.From; i < run.To; i++ {
			fraction := math.Mod((float64(i)+.5)*math.Phi, 1)
			if even { // a periodic source stays so
				fraction = .5
			}
			x := rounded(excess(int(counts[i]), fraction, mean), 6)
			samples = append(samples, sample{[]float64{before, mean, x}, 1})
			before = x
		}
	}
	a.ByTick, a.Segments, a.FirstMs = true, segments, 0
	a.Steps = fitJoint(samples, stepKnown)
	return true
}

// fitGaps learns the gaps between timestamps and the number of requests at
// each.
func (a *arrivals) fitGaps(at []float64, requests []int) {
	gaps := make([]float64, len(at)-1)
	amounts := make([]stats.Amount, len(gaps))
	for i := range gaps {
		gaps[i] = at[i+1] - at[i]
		amounts[i] = stats.Amount{Events: 1, Of: gaps[i]}
	}
	var samples []sample
	before := 0.0
	for _, run := range windows(stats.Varying{Amounts: amounts, Noise: stats.MeanNoise(gaps, 2)}) {
		mean := 1 / run.Sum.Rate()
		n := 0
		for i := run.From; i < run.To; i++ {
			n += requests[i+1]
			gap := rounded(gaps[i]/mean, 6)
			samples = append(samples, sample{[]float64{before, rounded(mean, 3), gap, float64(requests[i+1])}, 1})
			before = gap
		}
		a.Segments = append(a.Segments, segment{float64(n), float64(run.To - run.From), rounded(mean, 3)})
	}
	a.Steps = fitJoint(samples, stepKnown)
}

const (
	// arrivalsPerWindow is the usual number of arrivals of a window within a stretch
	// of steady rate, and usualWindows about the most windows of a source.
	arrivalsPerWindow = 100
	usualWindows      = 20
)

// windowOf returns the usual number of arrivals of a window of a source. Smaller windows
// would repeat the source's chance variation, to which drawing adds its own.
func windowOf(arrivals float64) float64 { return max(arrivalsPerWindow, arrivals/usualWindows) }

// windows cuts a source where its rate changes, and stretches of a steady rate into
// windows of as many arrivals: their rates still differ slowly, and where lengths do
// too, a mean rate would give each length a wrong share.
func windows(v stats.Varying) (windows []stats.Run) {
	runs := stats.SteadyRuns(v, minRequests)
	events := 0.0
	for _, run := range runs {
		events += run.Sum.Events
	}
	usual := windowOf(events)
	for _, run := range runs {
		share := run.Sum.Events / max(1, math.Floor(run.Sum.Events/usual))
		w := stats.Run{From: run.From}
		left := run.Sum.Events
		for i := run.From; i < run.To; i++ {
			w.To = i + 1
			w.Sum.Events += v.Amounts[i].Events
			w.Sum.Of += v.Amounts[i].Of
			if left -= v.Amounts[i].Events; w.To == run.To || w.Sum.Events >= share && left >= share/2 {
				windows = append(windows, w)
				w = stats.Run{From: w.To}
			}
		}
	}
	return windows
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
		counts[math.Round((t-ticks[i])*1e6)/1e6] += requests[i] // ns: less is an error of the arithmetic
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
	if areWhole(at) {
		return 1
	}
	return 0
}

// areWhole reports whether nearly all times are whole.
func areWhole(at []float64) bool {
	fractions := 0
	for _, t := range at {
		if math.Abs(t-math.Round(t)) > .01 {
			fractions++
		}
	}
	return 100*fractions <= len(at)
}
