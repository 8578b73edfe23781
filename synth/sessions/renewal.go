package sessions

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"moontide/trace/stats"
)

// renewal is a renewal process whose rate depends on the time of the source, as
// Y. Xiang et al. model the clients of production traffic ("ServeGen: Workload
// Characterization and Generation of Large Language Model Serving in Production",
// 2025).
type renewal struct {
	// Windows are the stretches of the source with a steady rate, in order:
	// [arrivals, ms].
	Windows [][2]float64 `json:"windows"`
	// Distribution is that of the gaps: gamma or weibull.
	Distribution string `json:"distribution"`
	// Shape of the distribution: 1 is a Poisson process, less is bursty.
	Shape float64 `json:"shape"`
}

// The distributions of gaps.
const (
	gammaGaps   = "gamma"
	weibullGaps = "weibull"
)

// gaps returns a function that draws gaps with a mean of 1.
func (r *renewal) gaps(random *rand.Rand) func() float64 {
	if r.Distribution == weibullGaps {
		w := stats.Weibull{Shape: r.Shape, Scale: 1 / math.Gamma(1+1/r.Shape)}
		return func() float64 { return w.Quantile(random.Float64()) }
	}
	g := distuv.Gamma{Alpha: r.Shape, Beta: r.Shape, Src: random}
	return g.Rand
}

// cv returns the coefficient of variation of the gaps.
func (r *renewal) cv() float64 {
	if r.Distribution == weibullGaps {
		second, _ := math.Lgamma(1 + 2/r.Shape)
		first, _ := math.Lgamma(1 + 1/r.Shape)
		return math.Sqrt(math.Expm1(second - 2*first))
	}
	return 1 / math.Sqrt(r.Shape)
}

// last reports whether there are arrivals in the last regime.
func (a *arrivals) last() bool {
	if a.Renewal == nil {
		return true
	}
	first := a.newCourse(true).heldSegment
	return slices.ContainsFunc(a.Renewal.Windows[first:], func(w [2]float64) bool { return w[0] > 0 })
}

// renewalClock is the state of a renewal process.
type renewalClock struct {
	gap    func() float64
	window int
	begin  float64 // of the window in the source, in ms
	into   float64 // of the window, in mean gaps

	deficit float64 // how far gaps were below their mean
	catchUp float64 // the number of gaps over which a deficit is compensated
	longest float64 // gap: that of the whole source
}

const (
	// minToCatchUp is the least number of gaps over which a deficit is compensated.
	minToCatchUp = 16
	maxWindows   = 10_000
)

func (r *renewal) newClock(random *rand.Rand) *renewalClock {
	c := &renewalClock{gap: r.gaps(random)}
	for _, w := range r.Windows {
		c.longest += w[0]
	}
	c.catchUp = min(max(c.longest/4, minToCatchUp), gapsToCatchUp)
	c.into = -random.Float64() * min(c.gap(), c.longest) // the trace begins within a gap
	return c
}

// next draws a gap and moves on by it, at a multiple of the source's rate.
func (c *renewalClock) next(speed float64) {
	gap := min(c.gap(), c.longest) * min(max(.5, 1+c.deficit/c.catchUp), 2)
	c.deficit += 1 - gap
	c.into = max(0, c.into+gap/speed)
}

// drawRenewal draws the next arrival of a renewal process. After the source's end it
// begins again, or holds the last regime: without arrivals there, none comes.
func (c *arrivalClock) drawRenewal() {
	r, windows := c.renewal, c.Renewal.Windows
	r.next(c.speed)
	for r.into >= windows[r.window][0] {
		r.into -= windows[r.window][0]
		r.begin += windows[r.window][1]
		if r.window++; r.window < len(windows) {
			continue
		}
		c.again(c.begin + r.begin)
		r.window, r.begin = 0, 0
		if c.hold {
			if r.window, r.begin = c.heldSegment, c.heldFrom; !c.last() {
				c.time, c.left = math.Inf(1), 1
				return
			}
		}
	}
	w := windows[r.window]
	c.now, c.left = c.begin+r.begin+r.into/w[0]*w[1], 1
	c.stamp()
}
