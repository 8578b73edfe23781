package trace

import (
	"math"
	"math/rand/v2"
	"slices"
)

const (
	// minOnGrid is the minimum number of distinct times for a grid, and of its ticks.
	minOnGrid = 8
	// gridTolerance is the maximum distance of a time from its tick, as a share
	// of the step: recorders stamp a few milliseconds early or late.
	gridTolerance = 0.01
	// gridShare is the minimum share of distinct times on the grid.
	gridShare = 0.99
	// maxChance bounds the probability that random times are on the grid.
	maxChance = 1e-9

	timesTried = 256  // sampled times that a step is tried on first
	fewShare   = 0.95 // share of them on the grid for all times to be tried
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

// clockSteps are the steps of clocks in milliseconds, the largest first.
var clockSteps = []float64{
	3_600_000, 1_800_000, 900_000, 600_000, 300_000, 120_000, 60_000, 30_000, 20_000, 15_000, 10_000, 6000, 5000, 4000, 3000, 2000, 1000,
	500, 400, 300, 250, 200, 150, 125, 100, 60, 50, 40, 1000.0 / 30, 30, 25, 20, 1000.0 / 60, 16, 15.625, 15, 12, 10, 8, 6, 5, 4, 3, 2,
}

// DetectGrid finds the largest step of a clock, from an hour to 2 ms, for which at least
// 99 % of the distinct times are within 1 % of the step of a common residue. It requires 8
// distinct times on 8 ticks, and enough for random times to match with a probability below
// 1e-9 (33 times for a step of 2 ms, 11 for 10 ms). Ticks may be unused, and a tick may
// have several times with their own jitter. Times must be finite, in any order, and are not
// modified.
func DetectGrid(times []float64) (Grid, bool) {
	sorted := slices.Clone(times)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	if len(sorted) < minOnGrid {
		return Grid{}, false
	}
	// Residues of large times, such as Unix time, would lose precision.
	origin := sorted[0]
	for i := range sorted {
		sorted[i] -= origin
	}
	few := make([]float64, min(len(sorted), timesTried))
	for i := range few {
		few[i] = sorted[i*len(sorted)/len(few)]
	}
	for _, step := range clockSteps {
		if _, most := commonResidue(few, step); float64(most) < fewShare*float64(len(few)) {
			continue
		}
		if g, ok := fitGrid(sorted, step); ok {
			g.Offset = math.Mod(g.Offset+origin, g.Step)
			return g, true
		}
	}
	return Grid{}, false
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
	return g, g.Ticks >= minOnGrid
}

// spread spreads the rows on each tick of a grid uniformly over the step up to
// the next tick, like a Poisson process with the same number of arrivals. Rows
// keep their order and move by at most one step. Timestamps off the grid are
// spread with their step; a row without a timestamp stays after its predecessor.
//
// A tick is assumed to be the start of its step, as clocks round down. The rows
// must be in order of arrival. spread holds the rows of one step; the same seed
// gives the same times.
func spread(reqs Requests, g Grid, seed uint64) Requests {
	return func(yield func(Request, error) bool) {
		random := rand.New(rand.NewPCG(seed, 0x737072656164)) // "spread"
		var held []Request
		var times []float64
		flush := func(step float64) bool {
			from, to := max(g.Offset+step*g.Step, 0), g.Offset+(step+1)*g.Step
			for i := range times {
				times[i] = from + random.Float64()*(to-from)
			}
			slices.Sort(times)
			next := 0
			for i := range held {
				if held[i].Timestamp.Set {
					held[i].Timestamp.Value = times[next]
					next++
				}
				if !yield(held[i], nil) {
					return false
				}
			}
			clear(held)
			held, times = held[:0], times[:0]
			return true
		}
		current := 0.0
		for r, err := range reqs {
			if err != nil {
				if flush(current) {
					yield(r, err)
				}
				return
			}
			if r.Timestamp.Set {
				step := g.stepOf(r.Timestamp.Value)
				if step != current && !flush(current) {
					return
				}
				current = step
				times = append(times, r.Timestamp.Value)
			}
			held = append(held, r)
		}
		flush(current)
	}
}

// stepOf returns the number of the step of a time. A time slightly before a tick,
// within the tolerance, belongs to that tick.
func (g Grid) stepOf(ms float64) float64 {
	return math.Floor((ms-g.Offset)/g.Step + 2*gridTolerance)
}
