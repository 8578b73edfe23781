package trace

import (
	"math"
	"slices"
)

const (
	// fewestOnGrid is how many distinct times a grid takes at least.
	fewestOnGrid = 8
	// gridTolerance is how far from its tick a time may be, as a share of the
	// step: recorders stamp some milliseconds early or late.
	gridTolerance = 0.01
	// gridShare is how many of the distinct times have to be that near.
	gridShare = 0.99
	// chanceOfGrid is how likely random times may lie on the grid as well.
	chanceOfGrid = 1e-9

	gapsTried  = 1024 // that a candidate is tried on first, from all over the trace
	gapShare   = 0.95 // of these, to be multiples of it: a stray spoils two
	timesTried = 256  // of them, on which a candidate has to fit before it is tried on all
	divisors   = 100  // of the gaps from which candidates come
	pairs      = 16   // of gaps whose common divisors are candidates
)

// Grid is a clock that the arrivals of a trace follow: their times are ticks,
// whole multiples of a step apart. What comes within a step then comes at once,
// which it did not where the trace was recorded. Times are in milliseconds.
type Grid struct {
	Step   float64 `json:"step_ms"`   // above 1
	Offset float64 `json:"offset_ms"` // of the ticks from 0: 0..Step, Step excluded
	// Jitter is the largest distance of a time on the grid from its tick, at most
	// Step/50.
	Jitter float64 `json:"jitter_ms"`
	Share  float64 `json:"share"` // of the distinct times, on the grid: 0.99..1
	Steps  int     `json:"steps"` // from the first tick to the last
	Ticks  int     `json:"ticks"` // that have a time
}

// Tick is the tick nearest to a time.
func (g Grid) Tick(ms float64) float64 {
	return g.Offset + math.Round((ms-g.Offset)/g.Step)*g.Step
}

// mostTimes is of how many distinct times a GridDetector judges.
const mostTimes = 1 << 20

// GridDetector finds the grid of the arrivals of a stream. It judges by its
// first million distinct times, and holds no more of them. The zero value
// works; it is not safe for concurrent use.
type GridDetector struct {
	times []float64
	rows  int
}

// Add takes the next row. Rows without a timestamp say nothing.
func (d *GridDetector) Add(r Request) {
	if !r.Timestamp.Set {
		return
	}
	if last := len(d.times) - 1; last < 0 || d.times[last] != r.Timestamp.Value {
		if len(d.times) == mostTimes {
			return
		}
		d.times = append(d.times, r.Timestamp.Value)
	}
	d.rows++
}

// Grid is what [DetectGrid] finds, and how many rows a tick has that has any,
// on average.
func (d *GridDetector) Grid() (g Grid, rowsPerTick float64, ok bool) {
	if g, ok = DetectGrid(d.times); ok {
		rowsPerTick = float64(d.rows) / float64(g.Ticks)
	}
	return g, rowsPerTick, ok
}

// DetectGrid finds the largest step above 1 ms for which at least 99 % of the
// distinct times lie within a hundredth of the step of a common residue. It
// finds none if there are fewer than 8 distinct times or so few that random
// ones could do as much with odds of one in 10^9 (a step of 2 ms takes 33
// times, one of 10 ms 11). A step of 1 ms is no grid: the unit of a trace is
// not a clock.
//
// A step need not be whole, not every tick need be used, and a tick may have
// several times, each with a jitter of its own. Some grids are missed: those of
// more than some twenty distinct times a tick, and those whose jitter counts
// and of which less than one tick in some fifty is used.
//
// Times are finite. They need be neither in order nor distinct, and are left as
// they are. The time taken is linear in their number where they are in order.
func DetectGrid(times []float64) (Grid, bool) {
	sorted := distinct(times)
	if len(sorted) < fewestOnGrid {
		return Grid{}, false
	}
	// Large times (of the Unix epoch) would cost the residues their last digits.
	origin := sorted[0]
	for i := range sorted {
		sorted[i] -= origin
	}
	some, few := sampledGaps(sorted), sampledTimes(sorted)
	for _, step := range gridSteps(some) {
		if !areMultiples(some, step) {
			continue
		}
		exact := refined(sorted, step)
		for _, step := range []float64{math.Round(exact), exact} {
			if _, most := commonResidue(few, step); float64(most) < gapShare*float64(len(few)) {
				continue // each step is off by a little: they drift apart
			}
			if g, ok := fitGrid(sorted, step); ok {
				g.Offset = math.Mod(g.Offset+origin, g.Step)
				return g, true
			}
		}
	}
	return Grid{}, false
}

func distinct(times []float64) []float64 {
	sorted := slices.Clone(times)
	if !slices.IsSorted(sorted) {
		slices.Sort(sorted)
	}
	return slices.Compact(sorted)
}

// sampledGaps are gaps between successive times, of many times from all over.
func sampledGaps(sorted []float64) []float64 {
	all := len(sorted) - 1
	gaps := make([]float64, min(all, gapsTried))
	for i := range gaps {
		at := i * all / len(gaps)
		gaps[i] = sorted[at+1] - sorted[at]
	}
	return gaps
}

// sampledTimes are times from all over.
func sampledTimes(sorted []float64) []float64 {
	times := make([]float64, min(len(sorted), timesTried))
	for i := range times {
		times[i] = sorted[i*len(sorted)/len(times)]
	}
	return times
}

// gridSteps returns steps to try, the largest first. But for strays, a gap is a
// multiple of the step or, between times of one tick, nearly nothing. How many
// of either there are is not known, so gaps of all lengths are tried, and their
// fractions. Where few ticks are used, these stay too large; but then two gaps
// seldom have more in common than the step.
func gridSteps(gaps []float64) []float64 {
	sorted := slices.Sorted(slices.Values(gaps))
	var steps []float64
	for _, rank := range []float64{0.05, 0.5, 0.95} {
		gap := sorted[int(rank*float64(len(sorted)))]
		for k := 1.0; k <= divisors && gap/k > 1; k++ {
			steps = append(steps, gap/k)
		}
	}
	for i := range pairs {
		at := i * (len(gaps) - 1) / pairs
		if step := commonDivisor(gaps[at], gaps[at+1]); step > 1 {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	slices.Reverse(steps)
	return slices.Compact(steps)
}

// commonDivisor is the greatest of two times in ms, to a microsecond.
func commonDivisor(a, b float64) float64 {
	x, y := int64(math.Round(a*1000)), int64(math.Round(b*1000))
	for y != 0 {
		x, y = y, x%y
	}
	return float64(x) / 1000
}

// areMultiples reports whether nearly all gaps are multiples of a step.
func areMultiples(gaps []float64, step float64) bool {
	strays, allowed := 0, int((1-gapShare)*float64(len(gaps)))
	for _, gap := range gaps {
		if _, ok := multiple(gap, step); !ok {
			if strays++; strays > allowed {
				return false
			}
		}
	}
	return true
}

// multiple is how many steps a gap has, 0 or more, and whether that is so, give
// or take the tolerance at both ends.
func multiple(gap, step float64) (steps float64, ok bool) {
	steps = math.Floor(gap/step + 0.5)
	return steps, math.Abs(gap-steps*step) <= 2*gridTolerance*step
}

// refined makes a step more exact: jitter cancels along a run of gaps, and the
// gaps beside strays are left out.
func refined(sorted []float64, step float64) float64 {
	sum, steps := 0.0, 0.0
	for i, t := range sorted[1:] {
		gap := t - sorted[i]
		if n, ok := multiple(gap, step); ok {
			sum += gap
			steps += n
		}
	}
	if steps == 0 {
		return step
	}
	return sum / steps
}

// commonResidue returns the residues of most of the times that differ from each
// other by no more than the tolerance allows, in order.
func commonResidue(times []float64, step float64) (held []float64, most int) {
	n := len(times)
	// Residues twice, one round apart, so that a window may go over the end.
	residues := make([]float64, n, 2*n)
	for i, t := range times {
		residues[i] = t - math.Floor(t/step)*step
	}
	slices.Sort(residues)
	for _, r := range residues[:n] {
		residues = append(residues, r+step)
	}
	from := 0
	for low, high := 0, 0; low < n; low++ {
		for high < low+n && residues[high]-residues[low] <= 2*gridTolerance*step {
			high++
		}
		if high-low > most {
			from, most = low, high-low
		}
	}
	return residues[from : from+most], most
}

// fitGrid places a grid of a step where it holds most of the sorted times,
// which begin at 0, and reports whether it holds enough of them.
func fitGrid(sorted []float64, step float64) (Grid, bool) {
	n := len(sorted)
	held, most := commonResidue(sorted, step)
	// One time sets the offset; whole milliseconds come near by chance more often,
	// and to a step of about 1 always.
	odds := 2*gridTolerance + 1/step
	if float64(most) < gridShare*float64(n) || math.Pow(odds, float64(most-1)) > chanceOfGrid {
		return Grid{}, false
	}
	g := Grid{Step: step, Offset: held[most/2], Share: float64(most) / float64(n)}
	g.Jitter = max(g.Offset-held[0], held[most-1]-g.Offset)
	g.count(sorted)
	return g, true
}

// count finds which ticks have a time.
func (g *Grid) count(sorted []float64) {
	last := math.Inf(-1)
	for _, t := range sorted {
		tick := g.Tick(t)
		if math.Abs(t-tick) <= 2*gridTolerance*g.Step && tick != last {
			last = tick
			g.Ticks++
		}
	}
	first, last := g.Tick(sorted[0]), g.Tick(sorted[len(sorted)-1])
	g.Steps = int(math.Round((last - first) / g.Step))
}
