package trace

import (
	"math"
	"slices"
)

const (
	// minOnGrid is the minimum number of distinct times for a grid.
	minOnGrid = 8
	// gridTolerance is the maximum distance of a time from its tick, as a share
	// of the step: recorders stamp a few milliseconds early or late.
	gridTolerance = 0.01
	// gridShare is the minimum share of distinct times on the grid.
	gridShare = 0.99
	// maxChance bounds the probability that random times are on the grid.
	maxChance = 1e-9

	gapsTried  = 1024 // sampled gaps that a candidate step is tried on first
	gapShare   = 0.95 // share of them that have to be multiples: a stray time spoils two
	timesTried = 256  // sampled times that a candidate has to fit before all times are tried
	divisors   = 100  // of sampled gaps are candidates
	pairs      = 16   // of gaps whose common divisors are candidates
)

// Grid is a coarse clock of timestamps: they are on ticks, which are multiples of
// a step apart, so all arrivals within a step seem simultaneous. Times are in
// milliseconds.
type Grid struct {
	Step   float64 `json:"step_ms"`   // above 1
	Offset float64 `json:"offset_ms"` // of the first tick, 0 <= Offset < Step
	// Jitter is the largest distance from a tick of a time on the grid, at most
	// Step/50.
	Jitter float64 `json:"jitter_ms"`
	Share  float64 `json:"share"` // of distinct times on the grid: 0.99..1
	Steps  int     `json:"steps"` // from the first tick to the last
	Ticks  int     `json:"ticks"` // with a time
}

// Tick returns the tick nearest to a time.
func (g Grid) Tick(ms float64) float64 {
	return g.Offset + math.Round((ms-g.Offset)/g.Step)*g.Step
}

// maxGridTimes bounds the times that a GridDetector keeps.
const maxGridTimes = 1 << 20

// GridDetector finds the grid of a stream from its first million distinct
// timestamps. The zero value works; it is not safe for concurrent use.
type GridDetector struct {
	times []float64
	rows  int
}

// Add adds the next row. Rows without a timestamp are ignored.
func (d *GridDetector) Add(r Request) {
	if r.Timestamp.Set {
		d.AddTime(r.Timestamp.Value)
	}
}

// AddTime adds a row with a timestamp in milliseconds.
func (d *GridDetector) AddTime(ms float64) {
	if last := len(d.times) - 1; last < 0 || d.times[last] != ms {
		if len(d.times) == maxGridTimes {
			return
		}
		d.times = append(d.times, ms)
	}
	d.rows++
}

// Grid returns the grid found by [DetectGrid] and the mean number of rows on a
// tick with rows.
func (d *GridDetector) Grid() (g Grid, rowsPerTick float64, ok bool) {
	if g, ok = DetectGrid(d.times); ok {
		rowsPerTick = float64(d.rows) / float64(g.Ticks)
	}
	return g, rowsPerTick, ok
}

// DetectGrid finds the largest step above 1 ms for which at least 99 % of the
// distinct times are within 1 % of the step of a common residue. It requires 8
// distinct times, and enough for random times to match with a probability below
// 1e-9 (33 times for a step of 2 ms, 11 for 10 ms). A step of 1 ms, the unit of
// traces, is not a grid.
//
// The step may be fractional, ticks may be unused, and a tick may have several
// times with their own jitter. Grids with more than about twenty distinct times a
// tick, and jittered grids with fewer than one in fifty ticks used, are missed.
//
// Times must be finite, in any order, and are not modified. The cost is linear if
// they are sorted.
func DetectGrid(times []float64) (Grid, bool) {
	sorted := distinct(times)
	if len(sorted) < minOnGrid {
		return Grid{}, false
	}
	// Residues of large times, such as Unix time, would lose precision.
	origin := sorted[0]
	for i := range sorted {
		sorted[i] -= origin
	}
	some := sampled(len(sorted)-1, gapsTried, func(i int) float64 { return sorted[i+1] - sorted[i] })
	few := sampled(len(sorted), timesTried, func(i int) float64 { return sorted[i] })
	for _, step := range gridSteps(some) {
		if !areMultiples(some, step) {
			continue
		}
		exact := refined(sorted, step)
		for _, step := range []float64{math.Round(exact), exact} {
			if _, most := commonResidue(few, step); float64(most) < gapShare*float64(len(few)) {
				continue // the step is slightly off, and the error adds up
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

// sampled returns up to most of n values, from all over the trace.
func sampled(n, most int, value func(i int) float64) []float64 {
	values := make([]float64, min(n, most))
	for i := range values {
		values[i] = value(i * n / len(values))
	}
	return values
}

// gridSteps returns candidate steps, the largest first. Except for strays, a gap
// is a multiple of the step or, between times of one tick, nearly 0. So
// fractions of short, median and long gaps are candidates. If few ticks are
// used, these are too large; but then the greatest common divisor of two gaps is
// often the step.
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

// commonDivisor returns the greatest common divisor of two times in ms, to a
// microsecond.
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

// multiple returns the number of steps in a gap, and whether the gap is a multiple
// of the step within the tolerance at both ends.
func multiple(gap, step float64) (steps float64, ok bool) {
	steps = math.Floor(gap/step + 0.5)
	return steps, math.Abs(gap-steps*step) <= 2*gridTolerance*step
}

// refined returns a more exact step: jitter cancels over many gaps. It skips
// gaps next to strays.
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

// commonResidue returns the largest set of residues that are within the tolerance
// of each other, in order.
func commonResidue(times []float64, step float64) (held []float64, most int) {
	n := len(times)
	// Residues twice, one step apart, so that a window can wrap around.
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

// fitGrid returns the grid with this step that fits the most of the sorted times,
// which start at 0, and whether those are enough.
func fitGrid(sorted []float64, step float64) (Grid, bool) {
	n := len(sorted)
	held, most := commonResidue(sorted, step)
	// One time sets the offset. Whole milliseconds are near a tick by chance more
	// often, and always for a step of about 1.
	odds := 2*gridTolerance + 1/step
	if float64(most) < gridShare*float64(n) || math.Pow(odds, float64(most-1)) > maxChance {
		return Grid{}, false
	}
	g := Grid{Step: step, Offset: held[most/2], Share: float64(most) / float64(n)}
	g.Jitter = max(g.Offset-held[0], held[most-1]-g.Offset)
	g.count(sorted)
	return g, true
}

// count counts the ticks with a time.
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
