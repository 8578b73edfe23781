package check

import (
	"math"
	"slices"
)

const (
	// fewestOnGrid is how many distinct timestamps a grid takes at least.
	fewestOnGrid = 8
	// gridTolerance is how far from its tick a timestamp may be, as a share of
	// the step: recorders stamp some milliseconds early or late.
	gridTolerance = 0.01
	// gridShare is how many of the distinct timestamps have to be that near.
	gridShare = 0.99
	// chanceOfGrid is how likely random timestamps may lie on the grid as well.
	chanceOfGrid = 1e-9

	gapsTried = 1024 // from which candidates are taken, from the start
	gapShare  = 0.95 // of these, to be multiples of a candidate
	divisors  = 100  // of the gap from which the candidates come
)

// Grid is the clock that timestamps follow. Times are in milliseconds.
type Grid struct {
	Step   float64 `json:"step_ms"`   // above 1
	Offset float64 `json:"offset_ms"` // of the ticks from 0: 0..Step
	// Jitter is the largest distance of a timestamp on the grid from its tick,
	// at most Step/50.
	Jitter float64 `json:"jitter_ms"`
	Share  float64 `json:"share"` // of the distinct timestamps, on the grid: 0.99..1
	Steps  float64 `json:"steps"` // from the first tick to the last
	Ticks  int     `json:"ticks"` // that have a timestamp
}

// DetectGrid finds the largest step above 1 ms for which at least 99 % of the
// distinct timestamps lie within a hundredth of the step of a common residue.
// It finds none if there are fewer than 8 distinct timestamps or so few that
// random ones could do as much with odds of one in 10^9 (a step of 2 ms takes
// 33 timestamps, one of 10 ms 11).
//
// A step need not be whole and not every tick need be used. A grid may be missed
// of which less than one tick in some fifty is used, or that has more than some
// twenty distinct timestamps a tick. Timestamps need be neither in order nor
// distinct and are left as they are.
func DetectGrid(timestamps []float64) (Grid, bool) {
	sorted := slices.Clone(timestamps)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	if len(sorted) < fewestOnGrid {
		return Grid{}, false
	}
	// Large times (of the Unix epoch) would cost the residues their last digits.
	origin := sorted[0]
	for i := range sorted {
		sorted[i] -= origin
	}
	allGaps := gapsOf(sorted)
	gaps := allGaps[:min(len(allGaps), gapsTried)]
	for _, step := range candidates(gaps) {
		if onMultiples(gaps, step) < gapShare {
			continue
		}
		exact := refine(allGaps, step)
		for _, step := range []float64{math.Round(exact), exact} {
			if g, ok := fit(sorted, step); ok {
				g.Offset = math.Mod(g.Offset+origin, g.Step)
				return g, true
			}
		}
	}
	return Grid{}, false
}

func gapsOf(sorted []float64) []float64 {
	gaps := make([]float64, len(sorted)-1)
	for i := range gaps {
		gaps[i] = sorted[i+1] - sorted[i]
	}
	return gaps
}

// candidates returns steps to try, the largest first. But for strays, a gap is a
// multiple of the step or, between times of one tick, nearly nothing. How many
// of either there are is not known, so gaps from all over are tried, and their
// fractions.
func candidates(gaps []float64) []float64 {
	sorted := slices.Sorted(slices.Values(gaps))
	var steps []float64
	for _, rank := range []float64{0.05, 0.5, 0.95} {
		gap := sorted[int(rank*float64(len(sorted)))]
		for k := 1.0; k <= divisors && gap/k > 1; k++ {
			steps = append(steps, gap/k)
		}
	}
	slices.Sort(steps)
	slices.Reverse(steps)
	return slices.Compact(steps)
}

// onMultiples is the share of gaps that are a multiple of a step, which may be
// 0, give or take the tolerance at both ends.
func onMultiples(gaps []float64, step float64) float64 {
	on := 0
	for _, gap := range gaps {
		if isMultiple(gap, step) {
			on++
		}
	}
	return float64(on) / float64(len(gaps))
}

func isMultiple(gap, step float64) bool {
	steps := math.Round(gap / step)
	return math.Abs(gap-steps*step) <= 2*gridTolerance*step
}

// refine makes a step more exact: jitter cancels along a run of gaps, and the
// gaps beside strays are left out.
func refine(gaps []float64, step float64) float64 {
	sum, steps := 0.0, 0.0
	for _, gap := range gaps {
		if isMultiple(gap, step) {
			sum += gap
			steps += math.Round(gap / step)
		}
	}
	if steps == 0 {
		return step
	}
	return sum / steps
}

// fit places a grid of a step where it holds most of the sorted times, which
// begin at 0, and reports whether it holds enough of them.
func fit(sorted []float64, step float64) (Grid, bool) {
	if step <= 1 {
		return Grid{}, false
	}
	n := len(sorted)
	// Residues twice, one round apart, so that a window may go over the end.
	residues := make([]float64, n, 2*n)
	for i, t := range sorted {
		residues[i] = math.Mod(t, step)
	}
	slices.Sort(residues)
	for _, r := range residues[:n] {
		residues = append(residues, r+step)
	}
	from, most := 0, 0
	for low, high := 0, 0; low < n; low++ {
		for high < low+n && residues[high]-residues[low] <= 2*gridTolerance*step {
			high++
		}
		if high-low > most {
			from, most = low, high-low
		}
	}
	// One time sets the offset; whole milliseconds come near by chance more often.
	odds := 2*gridTolerance + 1/step
	if float64(most) < gridShare*float64(n) || math.Pow(odds, float64(most-1)) > chanceOfGrid {
		return Grid{}, false
	}
	held := residues[from : from+most]
	g := Grid{Step: step, Offset: held[most/2], Share: float64(most) / float64(n)}
	g.Jitter = max(g.Offset-held[0], held[most-1]-g.Offset)
	g.count(sorted)
	return g, true
}

// count finds which ticks have a time.
func (g *Grid) count(sorted []float64) {
	tick := func(t float64) float64 { return math.Round((t - g.Offset) / g.Step) }
	first, last := tick(sorted[0]), math.Inf(-1)
	for _, t := range sorted {
		if math.Abs(t-g.Offset-tick(t)*g.Step) <= 2*gridTolerance*g.Step && tick(t) != last {
			last = tick(t)
			g.Ticks++
		}
	}
	g.Steps = tick(sorted[len(sorted)-1]) - first
}
