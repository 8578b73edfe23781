package search

import (
	"math"
	"math/rand/v2"
	"slices"
)

// The excess of trials is limited to this: how far a level is from the objectives says
// little about where they are just met.
const mostExcess = 1

// point is the trials of one level. x grows with the difficulty.
type point struct {
	level, x  float64
	y, weight float64 // mean excess and the sum of 1/variance
}

// fitted is a monotone fit of the excess.
type fitted struct {
	points []point // from easy to hard; y is the fit
	upTo   int     // number of points that meet the objectives
}

// leastError is assumed of trials without an error, which would outweigh all others.
const leastError = 0.005

// fit returns the monotone function of the level with the least squares, weighted by the
// errors of the trials. noise is added to the excess of each trial; nil is none.
func (c *Config) fit(trials []Trial, noise *rand.Rand) fitted {
	var f fitted
	for _, t := range trials {
		y := t.excess()
		if noise != nil {
			y += t.Error * noise.NormFloat64()
		}
		y = min(max(y, -mostExcess), mostExcess)
		x := math.Log(t.Level)
		if c.Goal == Smallest {
			x = -x
		}
		s := max(t.Error, leastError)
		p := point{t.Level, x, y, 1 / (s * s)}
		i, found := slices.BinarySearchFunc(f.points, x, func(p point, x float64) int {
			switch {
			case p.x < x:
				return -1
			case p.x > x:
				return 1
			}
			return 0
		})
		if found {
			f.points[i].merge(p)
		} else {
			f.points = slices.Insert(f.points, i, p)
		}
	}
	f.level()
	for f.upTo < len(f.points) && f.points[f.upTo].y < 0 {
		f.upTo++
	}
	return f
}

// excess returns the excess of a trial, which agrees with its outcome.
func (t *Trial) excess() float64 {
	const least = 1e-6
	switch {
	case !t.Known && t.Met:
		return -mostExcess
	case !t.Known:
		return mostExcess
	case t.Met:
		return min(t.Excess, -least)
	}
	return max(t.Excess, least)
}

func (p *point) merge(o point) {
	p.y = (p.y*p.weight + o.y*o.weight) / (p.weight + o.weight)
	p.weight += o.weight
}

// level makes the points monotone by pooling adjacent violators.
func (f *fitted) level() {
	type block struct {
		of    point
		count int
	}
	var blocks []block
	for _, p := range f.points {
		b := block{p, 1}
		for len(blocks) > 0 && blocks[len(blocks)-1].of.y > b.of.y {
			last := blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
			b.of.merge(last.of)
			b.count += last.count
		}
		blocks = append(blocks, b)
	}
	i := 0
	for _, b := range blocks {
		for range b.count {
			f.points[i].y = b.of.y
			i++
		}
	}
}

// crossing returns where the fit crosses 0. Without a crossing it is an end of the trials.
func (f *fitted) crossing() float64 {
	switch {
	case f.upTo == 0:
		return f.points[0].x
	case f.upTo == len(f.points):
		return f.points[f.upTo-1].x
	}
	a, b := f.points[f.upTo-1], f.points[f.upTo]
	return a.x + (b.x-a.x)*a.y/(a.y-b.y)
}

// interval returns the range of x in which the fit crosses 0 with a probability of 95 %,
// given the errors of the trials.
func (c *Config) interval(trials []Trial, f fitted) (from, to float64) {
	const draws = 400
	random := rand.New(rand.NewPCG(1, 0x736561726368)) // "search"
	crossings := make([]float64, draws)
	for i := range crossings {
		drawn := c.fit(trials, random)
		crossings[i] = drawn.crossing()
	}
	slices.Sort(crossings)
	from, to = crossings[draws/40], crossings[draws-1-draws/40]
	if f.upTo > 0 && f.upTo < len(f.points) { // it is somewhere between these levels
		from, to = min(from, f.points[f.upTo-1].x), max(to, f.points[f.upTo].x)
	}
	return from, to
}

// ceiling returns the lowest level of the trials' ceilings, infinite without one.
func ceiling(trials []Trial) float64 {
	lowest := math.Inf(1)
	for _, t := range trials {
		if t.Ceiling > 0 {
			lowest = min(lowest, t.Ceiling)
		}
	}
	return lowest
}

// nextFitted is next for trials with a known excess.
func (c *Config) nextFitted(trials []Trial) (level float64, ok bool) {
	f := c.fit(trials, nil)
	switch {
	case f.upTo == 0:
		return c.easier(f.points[0], trials)
	case f.upTo == len(f.points):
		return c.harderThan(f.points[f.upTo-1])
	}
	a, b := f.points[f.upTo-1], f.points[f.upTo]
	resolution := math.Log1p(c.resolution())
	low, high := c.interval(trials, f)
	noisy := max(a.x-low, high-b.x, 0) > resolution/2
	if level, open := c.inside(a, b, trials, noisy); open {
		return level, true
	}
	if !noisy || high-low <= 2*resolution {
		return 0, false
	}
	if a.weight <= b.weight {
		return a.level, true
	}
	return b.level, true
}

// easier returns a level to try if the easiest one tried does not meet the objectives.
func (c *Config) easier(from point, trials []Trial) (level float64, ok bool) {
	end := c.easiest()
	if from.level == end {
		return 0, false
	}
	if c.Goal == Smallest {
		return min(c.rounded(from.level*4), end), true
	}
	target := from.level / 4
	if hint := 0.9 * ceiling(trials); hint < 0.9*from.level {
		target = max(hint, target/16)
	}
	return max(c.rounded(target), end), true
}

// harderThan returns a level to try if the hardest one tried meets the objectives.
func (c *Config) harderThan(from point) (level float64, ok bool) {
	end := c.hardest()
	if from.level == end {
		return 0, false
	}
	factor := 4.0
	if from.y > -0.3 {
		factor = 1.5
	}
	if c.Goal == Smallest {
		return max(c.rounded(from.level/factor), end), true
	}
	next := c.rounded(from.level * factor)
	if c.Whole {
		next = max(next, from.level+1)
	}
	return min(next, end), true
}

func (c *Config) rounded(level float64) float64 {
	if c.Whole {
		return max(1, math.Floor(level))
	}
	return tidy(level/1.05, level*1.05)
}

// inside returns a level between two that are next to each other in the fit, near the
// crossing. open is false if they are close enough.
func (c *Config) inside(a, b point, trials []Trial, noisy bool) (level float64, open bool) {
	gap, resolution := b.x-a.x, math.Log1p(c.resolution())
	if gap <= resolution*(1+1e-6) || c.Whole && math.Abs(b.level-a.level) <= 1 || noisy && gap <= 2*resolution {
		return 0, false
	}
	if hint := ceiling(trials); c.Goal == Largest && gap > 0.4 && !math.IsInf(hint, 1) {
		if x := math.Log(0.92 * hint); x > a.x+0.1 && x < b.x-0.1 {
			return c.place(x, a, b), true
		}
		if x := math.Log(1.3 * hint); x > a.x+0.2 && x < b.x { // no system does much more
			b.x, b.y = x, mostExcess
			gap = b.x - a.x
		}
	}
	x := a.x + gap*a.y/(a.y-b.y)
	// Beyond the crossing, on the side of the wider part, so that both parts shrink.
	if x-a.x < b.x-x {
		x += 0.4 * resolution
	} else {
		x -= 0.4 * resolution
	}
	edge := 0.15 * gap
	if gap < 4*resolution {
		edge = min(0.3*resolution, 0.5*gap)
	}
	return c.place(min(max(x, a.x+edge), b.x-edge), a, b), true
}

// place returns the level at x, which is between those of two points.
func (c *Config) place(x float64, a, b point) float64 {
	if c.Goal == Smallest {
		x = -x
	}
	level := math.Exp(x)
	low, high := min(a.level, b.level), max(a.level, b.level)
	if c.Whole {
		return min(max(math.Round(level), low+1), high-1)
	}
	step := math.Sqrt(1 + c.resolution()/4)
	if level = tidy(level/step, level*step); level <= low || level >= high {
		return math.Sqrt(low * high)
	}
	return level
}

// answerFitted is Answer for trials with a known excess. The levels on both sides of the
// crossing are those of the fit.
func (c *Config) answerFitted(trials []Trial) Answer {
	f := c.fit(trials, nil)
	a := Answer{Trials: len(trials)}
	if f.upTo > 0 {
		a.Level, a.Found = f.points[f.upTo-1].level, true
	}
	if f.upTo < len(f.points) {
		a.Missed, a.Limited = f.points[f.upTo].level, true
	}
	if a.Found && a.Limited {
		from, to := c.interval(trials, f)
		estimate := f.crossing()
		if c.Goal == Smallest {
			from, estimate, to = -to, -estimate, -from
		}
		a.From, a.Estimate, a.To = math.Exp(from), math.Exp(estimate), math.Exp(to)
	}
	_, more := c.nextFitted(trials)
	a.Complete = !more && c.Check() == nil
	return a
}
