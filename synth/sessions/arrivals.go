package sessions

import (
	"math"
	"math/rand/v2"
)

// arrivals is when requests come, whoever they are. The source is cut into
// pieces of a steady rate, which follow each other as they did there; in them,
// what comes next is relative to the piece's mean. So the pieces alone say how
// long it takes until so many requests have come, whatever a draw knows of the
// ones before.
type arrivals struct {
	tick   float64 // timestamps are multiples of it, in ms; 0 if they have no grid
	jitter []bin   // ms off the tick, single values; none where all are on it
	pieces []piece // of the source, in their order
	// counted tells that time goes from tick to tick, with some requests or none
	// at each; else it goes by steps from one timestamp to the next.
	counted bool
	// steps has, given the value before and the piece's mean, how far the
	// requests of a tick are from the mean (see excess); or else the step, as a
	// multiple of the mean, and the requests at the timestamp after it.
	steps joint
	even  float64 // ms between requests where there is too little for all of this
}

// piece is a part of the source.
type piece struct {
	requests int
	times    int     // ticks or steps
	mean     float64 // requests a tick, or ms a step
}

const (
	stepKnown = 2 // dimensions: the value before, and the piece's mean
	// run is how many pieces follow each other as in the source, on average,
	// once a trace is longer than that.
	run = 8
	// owedTicks is over how many ticks their number of requests is kept, and
	// owedSteps over how many steps their time.
	owedTicks, owedSteps = 64, 512
	// maxTogether bounds the requests at one timestamp.
	maxTogether = 1e6
	// fewestCounted is the requests a tick where time goes from tick to tick, at
	// least: in the source, and in each piece.
	fewestCounted, fewestInPiece = .2, 1e-3
)

// excess is how far n requests at a tick are from their mean, on a scale on which
// chance has about the same size whatever the mean (F. J. Anscombe, "The
// Transformation of Poisson, Binomial and Negative-Binomial Data", Biometrika
// 35, 1948). The part, 0 to below 1, fills the space between whole numbers.
func excess(n int, part, mean float64) float64 {
	return 2 * (math.Sqrt(float64(n)+part) - math.Sqrt(mean+.5))
}

// ofExcess is the number of requests whose excess it is.
func ofExcess(x, mean float64) float64 {
	root := max(0, x/2+math.Sqrt(mean+.5))
	return math.Floor(min(root*root, maxTogether))
}

// clock draws arrivals one by one.
type clock struct {
	*arrivals
	random *rand.Rand
	speed  float64 // how many times the source's rate

	now    float64 // of the tick, at the source's rate
	time   float64 // of the timestamp
	left   int     // requests still to come at it
	before float64 // the value before
	owed   float64 // by how much ticks or steps were below their means

	piece  int
	played int // pieces so far
	times  int // still to come in the piece
}

func (a *arrivals) clock(random *rand.Rand, speed float64) *clock {
	c := &clock{arrivals: a, random: random, speed: speed}
	if len(a.pieces) > 0 {
		c.times = a.pieces[0].times
	}
	switch {
	case len(a.steps) == 0:
		c.left = 1
	case a.counted:
		c.countTick()
	default:
		c.left = c.requests(1)
		c.stamp()
	}
	return c
}

// next returns the time of the next request in ms. It never runs backwards.
func (c *clock) next() float64 {
	for c.left == 0 {
		switch {
		case len(c.steps) == 0:
			c.time += c.even
			c.left = 1
		case c.counted:
			c.now += c.tick
			c.countTick()
		default:
			c.step()
		}
	}
	c.left--
	return microseconds(c.time / c.speed)
}

// microseconds rounds a time in ms to what traces tell apart.
func microseconds(ms float64) float64 { return math.Round(ms*1000) / 1000 }

// draw returns the value that comes i-th at a time.
func (c *clock) draw(i int, known ...float64) float64 {
	given := &c.steps[i]
	return given.leaves[given.leaf(known)].at(c.random.Float64(), c.random)
}

// countTick draws the requests of a tick. What ticks had too few or too many is
// made up for by those that follow.
func (c *clock) countTick() {
	c.goOn()
	mean := c.pieces[c.piece].mean
	c.before = c.draw(0, c.before, mean)
	n := ofExcess(c.before, min(max(mean/2, mean+c.owed/owedTicks), 2*mean))
	c.owed += mean - n
	if n == 0 && c.owed > 16+owedTicks*mean {
		n, c.owed = 1, 0
	}
	if c.left = int(n); c.left > 0 {
		c.stamp()
	}
}

// step draws the time to the next timestamp and the requests there.
func (c *clock) step() {
	c.goOn()
	mean := c.pieces[c.piece].mean
	step := c.draw(0, c.before, mean)
	c.left = c.requests(step)
	c.before = step
	step *= min(max(.5, 1+c.owed/owedSteps), 2)
	c.owed += 1 - step
	c.now += step * mean
	c.stamp()
}

// requests draws the number at a timestamp after a step.
func (c *clock) requests(step float64) int {
	n := c.draw(1, c.before, c.pieces[c.piece].mean, step)
	return int(min(max(1, math.Round(n)), maxTogether))
}

// stamp makes the timestamp of the time that it is.
func (c *clock) stamp() {
	at := c.now
	if c.tick > 0 {
		at = math.Round(at/c.tick) * c.tick
		at += c.drawJitter(at)
	}
	c.time = max(c.time, at)
}

func (c *clock) drawJitter(at float64) float64 {
	total := 0.0
	for i := range c.jitter {
		total += c.jitter[i].weight
	}
	u := c.random.Float64() * total
	for i := range c.jitter {
		if u < c.jitter[i].weight && at+c.jitter[i].low >= 0 {
			return c.jitter[i].low
		}
		u -= c.jitter[i].weight
	}
	return 0
}

// goOn takes one tick or step of the piece or, where it has none left, of the
// next one: the source's next or, where the source has ended, runs of its pieces
// from random places (D. N. Politis and J. P. Romano, "The Stationary
// Bootstrap", JASA 89, 1994).
func (c *clock) goOn() {
	if c.times == 0 {
		c.played++
		c.piece++
		if c.played >= len(c.pieces) && (c.random.IntN(run) == 0 || c.piece == len(c.pieces)) {
			c.piece = c.random.IntN(len(c.pieces))
		}
		c.times = c.pieces[c.piece].times
	}
	c.times--
}
