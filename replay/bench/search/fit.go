package search

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// point is a trial. x grows with the difficulty: it is the logarithm of the load, negative
// for [Smallest].
type point struct {
	level, x  float64
	met       bool
	raw       float64 // excess of the trial, transformed
	y, weight float64 // monotone fit, and 1/variance
}

// fitted is a monotone fit of the excess, and the largest level that can be sustained.
type fitted struct {
	points  []point // from easy to hard
	upTo    int     // number of points up to the answer
	exact   bool    // no trial has an error
	known   bool    // the excess of a trial
	ceiling ceiling
}

// ceiling is the mean of the trials' ceilings, weighted by their errors.
type ceiling struct{ x, weight float64 }

func (c *ceiling) known() bool { return c.weight > 0 }

// The excess of trials is limited to this: how far a level is from the objectives says
// little about where they are just met.
const mostExcess = 1

// leastError is assumed of trials without an error, which would outweigh all others.
const leastError = 0.005

// fit returns the monotone function of the level that is closest to the trials. noise is
// added to them in proportion to their errors; nil is none.
func (c *Config) fit(trials []Trial, noise *rand.Rand) fitted {
	f := fitted{exact: true}
	normal := func() float64 {
		if noise == nil {
			return 0
		}
		return noise.NormFloat64()
	}
	for _, t := range trials {
		s := max(t.Error, leastError)
		f.exact, f.known = f.exact && t.Error == 0, f.known || t.Known
		y := min(max(transformed(t.excess()+t.Error*normal()), -mostExcess), mostExcess)
		p := point{level: t.Level, x: c.x(t), met: t.Met, raw: y, y: y, weight: 1 / (s * s)}
		i, _ := slices.BinarySearchFunc(f.points, p, func(a, b point) int {
			return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(a.y, b.y), cmp.Compare(a.weight, b.weight))
		})
		f.points = slices.Insert(f.points, i, p)
	}
	sustained := c.sustained(trials)
	for _, t := range trials {
		if t.Ceiling > 0 && math.Log(t.Ceiling) > sustained {
			s := max(t.CeilingError, leastError)
			f.ceiling.add(math.Log(t.Ceiling)+s*normal(), 1/(s*s))
		}
	}
	if f.exact {
		f.settle(c.Goal)
	} else {
		f.level()
	}
	for f.upTo < len(f.points) && f.points[f.upTo].y < 0 && !f.above(f.points[f.upTo]) {
		f.upTo++
	}
	return f
}

// x returns the difficulty of a trial.
func (c *Config) x(t Trial) float64 {
	x := math.Log(cmp.Or(t.Load, t.Level))
	if c.Goal == Smallest {
		return -x
	}
	return x
}

// pooled returns the trials with errors from all trials at about their level: where rare
// events decide, a trial without them has a small excess and the smallest error.
func (c *Config) pooled(trials []Trial) []Trial {
	all := slices.Clone(trials)
	for i, t := range trials {
		weights, squares := 0.0, 0.0
		for _, of := range trials {
			w := tricube((c.x(of) - c.x(t)) / nearby)
			weights, squares = weights+w, squares+w*of.Error*of.Error
		}
		all[i].Error = math.Sqrt(squares / weights)
	}
	return all
}

// growing is by how much the load may exceed the ceiling, as a logarithm, in a trial
// without an estimate of it.
const growing = 0.05

// sustained returns the logarithm of a level that the system can sustain, by the trials
// that clearly met the objectives. A ceiling below it is wrong, as of a trial that was too
// short.
func (c *Config) sustained(trials []Trial) float64 {
	most := math.Inf(-1)
	for _, t := range trials {
		if t.Met && t.Ceiling == 0 && c.Goal == Largest {
			most = max(most, c.x(t)-growing)
		}
	}
	return most
}

func (c *ceiling) add(x, weight float64) {
	c.x = (c.x*c.weight + x*weight) / (c.weight + weight)
	c.weight += weight
}

// above reports whether a level cannot be sustained.
func (f *fitted) above(p point) bool { return !f.exact && f.ceiling.known() && p.x > f.ceiling.x }

// step returns the factor between levels in search of a bracket.
func (f *fitted) step() float64 {
	if f.known {
		return 4
	}
	return 2
}

// excess returns the excess of a trial, which agrees with its outcome.
func (t *Trial) excess() float64 {
	const least = 1e-6
	switch {
	case !t.Known && t.Met:
		return -10 * mostExcess
	case !t.Known:
		return 10 * mostExcess
	case t.Met:
		return min(t.Excess, -least)
	case t.Ceiling > 0:
		return t.Excess
	}
	return max(t.Excess, least)
}

// transformed returns 1 less the limit over the value, which in a queue is a nearly linear
// function of the load, and equal to the excess close to 0.
func transformed(excess float64) float64 { return 1 - math.Exp(-excess) }

// settle makes the points of exact trials monotone: of contradictions, the one that limits
// the answer holds.
func (f *fitted) settle(goal Goal) {
	if goal == Largest {
		for i := 1; i < len(f.points); i++ {
			f.points[i].y = max(f.points[i].y, f.points[i-1].y)
		}
		return
	}
	for i := len(f.points) - 2; i >= 0; i-- {
		f.points[i].y = min(f.points[i].y, f.points[i+1].y)
	}
}

// level makes the points monotone by pooling adjacent violators.
func (f *fitted) level() {
	type block struct {
		y, weight float64
		count     int
	}
	var blocks []block
	for _, p := range f.points {
		b := block{p.y, p.weight, 1}
		for len(blocks) > 0 && blocks[len(blocks)-1].y > b.y {
			last := blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
			b.y = (b.y*b.weight + last.y*last.weight) / (b.weight + last.weight)
			b.weight, b.count = b.weight+last.weight, b.count+last.count
		}
		blocks = append(blocks, b)
	}
	i := 0
	for _, b := range blocks {
		for range b.count {
			f.points[i].y = b.y
			i++
		}
	}
}

// exceptions returns the levels that contradict the answer, the closest first.
func (f *fitted) exceptions() (levels []float64) {
	for _, p := range f.points[f.upTo:] {
		if p.met {
			levels = append(levels, p.level)
		}
	}
	for _, p := range slices.Backward(f.points[:f.upTo]) {
		if !p.met {
			levels = append(levels, p.level)
		}
	}
	return levels
}

// crossing returns where the objectives are just met. Without a crossing it is an end of
// the trials.
func (f *fitted) crossing() float64 {
	x := f.interpolated()
	if f.exact || f.upTo == 0 || f.upTo == len(f.points) {
		return x
	}
	if line, ok := f.line(x); ok {
		low, high := f.certain()
		x = min(max(line, low), high)
	}
	if f.ceiling.known() {
		x = min(x, f.ceiling.x)
	}
	return x
}

// interpolated returns where the monotone fit crosses 0, or the ceiling if it does not.
func (f *fitted) interpolated() float64 {
	i := slices.IndexFunc(f.points, func(p point) bool { return p.y >= 0 })
	switch {
	case i == 0:
		return f.points[0].x
	case i < 0 && f.ceiling.known():
		return f.ceiling.x
	case i < 0:
		return f.points[len(f.points)-1].x
	}
	a, b := f.points[i-1], f.points[i]
	return a.x + (b.x-a.x)*a.y/(a.y-b.y)
}

// line returns where a straight line through the points around a place crosses 0. Points
// whose excess is far from 0 count little, as near does for their level: far beyond the
// capacity, a latency depends on the length of a run more than on its load.
func (f *fitted) line(around float64) (x float64, ok bool) {
	var n, sx, sy, sxx, sxy float64
	count := 0
	for _, p := range f.points {
		d := p.x - around
		w := p.weight * tricube(d/nearby) * tricube(p.raw/mostExcess)
		if w == 0 {
			continue
		}
		n, sx, sy, sxx, sxy = n+w, sx+w*d, sy+w*p.raw, sxx+w*d*d, sxy+w*d*p.raw
		count++
	}
	spread := n*sxx - sx*sx
	if count < 3 || spread <= 0 {
		return 0, false
	}
	slope := (n*sxy - sx*sy) / spread
	d := (sx*slope - sy) / (n * slope)
	if !(slope > 0.1) || math.Abs(d) > closeBy {
		return 0, false
	}
	return around + d, true
}

// certain returns the range in which the crossing is by the points that are clearly on one
// side of it, whatever a line through others says.
func (f *fitted) certain() (low, high float64) {
	const errors = 2
	low, high = math.Inf(-1), math.Inf(1)
	for _, p := range f.points {
		switch distance := p.y * math.Sqrt(p.weight); {
		case distance < -errors:
			low = p.x
		case distance > errors:
			return low, p.x
		}
	}
	return low, high
}

// tricube returns a weight that falls from 1 at 0 to 0 at 1 and -1.
func tricube(u float64) float64 {
	u = min(math.Abs(u), 1)
	return math.Pow(1-u*u*u, 3)
}

// weightNear returns the weight of the trials on a side of a place.
func (f *fitted) weightNear(x, side float64) (sum float64) {
	for _, p := range f.points {
		if d := p.x - x; d*side > 0 {
			sum += p.weight * tricube(d/nearby)
		}
	}
	return sum
}

// bent is how far the crossing of a curve may be from that of a straight line, as a share
// of the distance between the levels on both sides, for each unit by which their excesses
// differ: close to the crossing, curves are straight.
const bent = 0.3

// interval returns the crossing, and the range in which it is with a probability of 95 %,
// given the errors of the trials.
func (c *Config) interval(trials []Trial, f fitted) (at, from, to float64) {
	at = f.crossing()
	if f.exact {
		return at, f.points[f.upTo-1].x, f.points[f.upTo].x
	}
	const draws = 400
	random := rand.New(rand.NewPCG(1, 0x736561726368)) // "search"
	crossings := make([]float64, draws)
	for i := range crossings {
		drawn := c.fit(trials, random)
		crossings[i] = drawn.crossing()
	}
	slices.Sort(crossings)
	a, b := f.points[f.upTo-1], f.points[f.upTo]
	bend := bent * (b.x - a.x) * (b.y - a.y)
	return at, min(at, crossings[draws/40]) - bend, max(at, crossings[draws-1-draws/40]) + bend
}
