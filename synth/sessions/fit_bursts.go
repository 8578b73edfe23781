package sessions

import (
	"math"
	"slices"

	"moontide/trace"
)

const (
	// burstShare is the minimum share of the gaps between timestamps that are gaps within
	// bursts, and maxBurstTime the maximum share of the source's time that these take.
	burstShare, maxBurstTime = .5, .25
	// burstSeparation is the minimum ratio of the gaps between bursts to those within.
	burstSeparation = 10
	// fewestInGroup is the minimum number of gaps within bursts, and between them.
	fewestInGroup = 2 * minRequests
	// maxBetween is the maximum number of gaps neither within bursts nor between them, as
	// a share of those that a density with one peak has there, and burstEvidence the
	// minimum logarithm of the odds that these are not so few by chance.
	maxBetween, burstEvidence = .2, 20
)

// findBursts moves the rows of a burst to one instant, if the source has bursts.
func (f *fitter) findBursts() {
	if f.file.Delays || f.untimed > 0 {
		return
	}
	times := f.times()
	longest := longestInBursts(times)
	if longest == 0 {
		return
	}
	instants := instantsOf(times, longest)
	b := &bursts{}
	if at, _ := distinct(times, nil); areWhole(at) {
		b.TickMs = 1
	}
	var offsets, gaps []sample
	place, onGrid := 0, false
	for i, t := range times {
		if place++; i == 0 || instants[i] != instants[i-1] {
			place = 0
			offsets = append(offsets, sample{[]float64{rounded(t-instants[i], 6)}, 1})
			onGrid = onGrid || t != instants[i]
		} else {
			gaps = append(gaps, sample{[]float64{min(float64(place), maxPlace), rounded(t-times[i-1], 6)}, 1})
		}
		f.rows[i].at, f.rows[i].phase = instants[i], instants[i]
	}
	if b.Gaps = fitJoint(gaps, gapKnown); onGrid && len(offsets) >= minRequests {
		b.Offsets = fitJoint(offsets, 0)
	}
	f.file.Bursts = b
	f.note("%d requests arrive in %d bursts: these are learned, and the gaps within them", len(times), len(offsets))
}

// instantsOf returns the instants of the bursts of sorted times from 0, whose gaps are at
// most longest: the ticks of their grid or, without one, the times of their first
// requests.
func instantsOf(times []float64, longest float64) []float64 {
	instants := slices.Clone(times)
	for i := 1; i < len(times); i++ {
		if times[i]-times[i-1] <= longest {
			instants[i] = instants[i-1]
		}
	}
	if grid, ok := trace.DetectGrid(instants); ok {
		for i, t := range instants {
			instants[i] = rounded(math.Round((t-grid.Tick(0))/grid.Step)*grid.Step, 15)
		}
	}
	return instants
}

// longestInBursts returns the longest gap within the bursts of sorted times, or 0 if the
// gaps are not of two kinds. The logarithms of the gaps of a Poisson process have a
// density with one peak, as have those with a gamma or a Weibull distribution, however
// irregular. So between any two groups of such gaps it is at least that of the sparser
// group next to it. In a source with bursts there are far fewer gaps.
func longestInBursts(times []float64) (longest float64) {
	at, _ := distinct(times, nil)
	gaps := make([]float64, max(len(at)-1, 0))
	for i := range gaps {
		gaps[i] = at[i+1] - at[i]
	}
	slices.Sort(gaps)
	widest, within, next := 1.0, 0.0, 0
	for i, gap := range gaps {
		if within += gap; within > maxBurstTime*at[len(at)-1] {
			break
		}
		for next < len(gaps) && gaps[next] < burstSeparation*gap {
			next++
		}
		below, above := i+1, len(gaps)-next
		if min(below, above) < fewestInGroup || float64(below) < burstShare*float64(len(gaps)) {
			continue
		}
		if hole := gaps[i+1] / gap; hole > widest && areApart(gaps, below, next) {
			longest, widest = gap, hole
		}
	}
	return longest
}

// areApart reports whether there are far fewer sorted gaps from one group of them, below,
// to another, from above on, than a density with one peak has there.
func areApart(gaps []float64, below, above int) bool {
	density := func(from, to int) float64 { return float64(to-from) / math.Log(gaps[to]/gaps[from]) }
	least := min(density(below/2, below-1), density(above, (above+len(gaps))/2))
	expected, found := least*math.Log(gaps[above]/gaps[below-1]), float64(above-below)
	evidence := expected
	if found > 0 {
		evidence += found * (math.Log(found/expected) - 1) // H. Chernoff's bound, 1952
	}
	return found <= maxBetween*expected && evidence >= burstEvidence
}
