package analyze

import (
	"math"
	"slices"
)

const (
	// minGridTimes is how many distinct times a grid takes to be told from
	// chance: each hits a given grid by chance in 2 of 100 cases.
	minGridTimes = 8
	// gridTolerance is how far from a tick a time may lie, as a share of the
	// step: recorders stamp some milliseconds early or late.
	gridTolerance = 0.01
	// gridShare is how many of the distinct times have to lie on a grid.
	gridShare = 0.99
	// commonGaps is how many of the commonest gaps are tried.
	commonGaps = 8
)

// Grid is a clock that all arrivals follow: their timestamps are ticks, whole
// multiples of a step apart. The requests of a step then come at once, which
// they did not where the trace was recorded.
//
// It is the largest step for which at least 99 of 100 distinct timestamps lie
// within a hundredth of the step of a tick. The steps tried are the commonest
// gaps between distinct timestamps, what these have in common as a divisor, and
// the same adjusted to the length of the trace and to round numbers; the first
// timestamp and the middle one are tried as a tick. A trace with fewer than 8
// distinct timestamps has no grid.
type Grid struct {
	// Step is in milliseconds. A step of 1 is a trace in whole milliseconds.
	Step float64
	// Tick is the timestamp that the others are multiples of Step away from, in
	// milliseconds.
	Tick float64
	// OnGrid is the share of distinct timestamps that lie on the grid, 0.99..1.
	OnGrid float64
}

// gridOf finds the grid of sorted times in ms with their sorted gaps; nil where
// there is none.
func gridOf(times, gaps []float64) *Grid {
	times = slices.Compact(slices.Clone(times))
	if len(times) < minGridTimes {
		return nil
	}
	var best *Grid
	for _, gap := range gridGaps(gaps) {
		for _, step := range gridSteps(times, gap) {
			g := gridAt(times, step)
			if g == nil {
				continue
			}
			// A jitter makes steps that differ a little; the first was commoner.
			if best == nil || step > 1.5*best.Step {
				best = g
			}
			break
		}
	}
	return best
}

// gridAt is the grid of a step, or nil where times do not follow it.
func gridAt(times []float64, step float64) *Grid {
	for _, tick := range []float64{times[0], times[len(times)/2]} {
		if share := onGrid(times, tick, step); share >= gridShare {
			return &Grid{Step: step, Tick: tick, OnGrid: share}
		}
	}
	return nil
}

// gridGaps returns gaps between times that may be multiples or neighbours of a
// grid's step: the commonest, the common divisors of the commonest, and that of
// all. The gaps are sorted and count in whole microseconds.
func gridGaps(sorted []float64) []float64 {
	type counted struct {
		gap   int64
		times int
	}
	var different []counted
	var divisor int64
	for _, ms := range sorted {
		gap := int64(math.Round(ms * 1000))
		if gap == 0 {
			continue
		}
		if n := len(different); n > 0 && different[n-1].gap == gap {
			different[n-1].times++
			continue
		}
		different = append(different, counted{gap, 1})
		divisor = gcd(divisor, gap)
	}
	candidates := []float64{float64(divisor) / 1000}
	var shared int64
	for range min(commonGaps, len(different)) {
		common := &different[0]
		for i := range different {
			if different[i].times > common.times {
				common = &different[i]
			}
		}
		common.times = 0
		shared = gcd(shared, common.gap)
		candidates = append(candidates, float64(common.gap)/1000, float64(shared)/1000)
	}
	return slices.DeleteFunc(candidates, func(ms float64) bool { return ms == 0 })
}

// gridSteps returns the steps to try for a gap that may be off by a jitter: the
// round numbers near the step of which the trace's duration is a whole multiple,
// the roundest first, and that step.
func gridSteps(times []float64, gap float64) []float64 {
	ticks := 0.0
	for i := range times[1:] {
		ticks += math.Round((times[i+1] - times[i]) / gap)
	}
	exact := gap
	if ticks > 0 {
		exact = (times[len(times)-1] - times[0]) / ticks
	}
	var steps []float64
	for unit := 1000.0; unit > 0.0005; unit /= 10 {
		if round := math.Round(exact/unit) * unit; round > 0 {
			steps = append(steps, round)
		}
	}
	return append(steps, exact)
}

// onGrid returns the share of times that lie on the grid of a step and a tick;
// once too few can, it gives up with less than gridShare.
func onGrid(times []float64, tick, step float64) float64 {
	off, allowed := 0, int((1-gridShare)*float64(len(times)))
	for _, t := range times {
		ticks := (t - tick) / step
		if math.Abs(ticks-math.Round(ticks)) > gridTolerance {
			if off++; off > allowed {
				return 0
			}
		}
	}
	return 1 - float64(off)/float64(len(times))
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
