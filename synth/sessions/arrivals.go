package sessions

import (
	"math"
	"math/rand/v2"
)

// arrivals models when requests arrive, independent of their contents. The
// source is cut into segments with a steady rate, which are drawn in its order.
// Within a segment, values are relative to its mean.
type arrivals struct {
	TickMs   float64   `json:"tick_ms"`  // timestamps are multiples of it; 0 if they have no grid
	Jitter   []jitter  `json:"jitter"`   // offsets from the tick; empty if all requests are on it
	Segments []segment `json:"segments"` // of the source, in order
	// ByTick means that time advances from tick to tick, each with any number
	// of requests; otherwise it advances by gaps between timestamps.
	ByTick bool `json:"by_tick"`
	// Steps holds, given the previous value and the segment's mean: by tick,
	// the excess of the requests at a tick; otherwise the gap as a multiple of
	// the mean, and the number of requests after it.
	Steps     joint   `json:"steps"`
	MeanGapMs float64 `json:"mean_gap_ms"` // used where there are no steps
}

// segment is a part of the source with a steady rate: its requests, its ticks
// or gaps, and the mean requests per tick or ms per gap.
type segment [3]float64

func (s segment) times() int    { return int(s[1]) }
func (s segment) mean() float64 { return s[2] }

// jitter is an offset from the tick: the number of requests with it, and the
// offset in ms.
type jitter [2]float64

const (
	stepKnown = 2 // known values of steps
	// segmentRun is the average number of segments that follow each other as in
	// the source once a trace is longer than the source.
	segmentRun = 8
	// The number of ticks and gaps over which a deficit is compensated.
	ticksToCatchUp, gapsToCatchUp = 64, 512
	maxAtOnce                     = 1e6 // requests at one timestamp
	// The minimum requests per tick for time to advance from tick to tick: in
	// the whole source, and in each segment.
	minPerTick, minPerTickInSegment = .2, 1e-3
)

// excess returns how far n requests at a tick are from their mean, on a scale
// on which random variation has about the same size for every mean (F. J.
// Anscombe, "The Transformation of Poisson, Binomial and Negative-Binomial
// Data", Biometrika 35, 1948). The fraction, 0 to below 1, fills the space
// between whole numbers.
func excess(n int, fraction, mean float64) float64 {
	return 2 * (math.Sqrt(float64(n)+fraction) - math.Sqrt(mean+.5))
}

// countOfExcess is the inverse of excess.
func countOfExcess(x, mean float64) float64 {
	root := max(0, x/2+math.Sqrt(mean+.5))
	return math.Floor(min(root*root, maxAtOnce))
}

// arrivalClock draws arrivals one by one.
type arrivalClock struct {
	*arrivals
	random *rand.Rand
	speed  float64 // multiple of the source's rate

	now     float64 // of the tick or gap, at the source's rate
	time    float64 // of the timestamp
	left    int     // requests left at it
	before  float64 // previous value
	deficit float64 // how far ticks or gaps were below their means

	segment int
	played  int // segments drawn so far
	times   int // ticks or gaps left in the segment
}

func (a *arrivals) newClock(random *rand.Rand, speed float64) *arrivalClock {
	c := &arrivalClock{arrivals: a, random: random, speed: speed}
	if len(a.Segments) > 0 {
		c.times = a.Segments[0].times()
	}
	switch {
	case len(a.Steps) == 0:
		c.left = 1
	case a.ByTick:
		c.drawTick()
	default:
		c.left = c.requests(1)
		c.stamp()
	}
	return c
}

// next returns the time of the next request in ms. Times never decrease.
func (c *arrivalClock) next() float64 {
	for c.left == 0 {
		switch {
		case len(c.Steps) == 0:
			c.time += c.MeanGapMs
			c.left = 1
		case c.ByTick:
			c.now += c.TickMs
			c.drawTick()
		default:
			c.drawGap()
		}
	}
	c.left--
	return microseconds(c.time / c.speed)
}

// microseconds rounds a time in ms to microseconds.
func microseconds(ms float64) float64 { return math.Round(ms*1000) / 1000 }

// draw returns the i-th value of steps.
func (c *arrivalClock) draw(i int, known ...float64) float64 {
	given := &c.Steps[i]
	return given.histograms[given.leaf(known)].draw(c.random.Float64(), c.random)
}

// drawTick draws the requests of a tick. Later ticks compensate for a deficit.
func (c *arrivalClock) drawTick() {
	c.advanceSegment()
	mean := c.Segments[c.segment].mean()
	c.before = c.draw(0, c.before, mean)
	n := countOfExcess(c.before, min(max(mean/2, mean+c.deficit/ticksToCatchUp), 2*mean))
	c.deficit += mean - n
	if n == 0 && c.deficit > 16+ticksToCatchUp*mean {
		n, c.deficit = 1, 0
	}
	if c.left = int(n); c.left > 0 {
		c.stamp()
	}
}

// drawGap draws the time to the next timestamp and the requests there.
func (c *arrivalClock) drawGap() {
	c.advanceSegment()
	mean := c.Segments[c.segment].mean()
	gap := c.draw(0, c.before, mean)
	c.left = c.requests(gap)
	c.before = gap
	gap *= min(max(.5, 1+c.deficit/gapsToCatchUp), 2)
	c.deficit += 1 - gap
	c.now += gap * mean
	c.stamp()
}

// requests draws the number of requests at a timestamp after a gap.
func (c *arrivalClock) requests(gap float64) int {
	n := c.draw(1, c.before, c.Segments[c.segment].mean(), gap)
	return int(min(max(1, math.Round(n)), maxAtOnce))
}

// stamp sets the timestamp from the current time.
func (c *arrivalClock) stamp() {
	at := c.now
	if c.TickMs > 0 {
		at = math.Round(at/c.TickMs) * c.TickMs
		at += c.drawJitter(at)
	}
	c.time = max(c.time, at)
}

func (c *arrivalClock) drawJitter(at float64) float64 {
	total := 0.0
	for _, j := range c.Jitter {
		total += j[0]
	}
	u := c.random.Float64() * total
	for _, j := range c.Jitter {
		if u < j[0] && at+j[1] >= 0 {
			return j[1]
		}
		u -= j[0]
	}
	return 0
}

// advanceSegment takes one tick or gap of the segment or, if none is left, of
// the next segment. After the end of the source, runs of its segments follow
// from random places (D. N. Politis and J. P. Romano, "The Stationary
// Bootstrap", JASA 89, 1994).
func (c *arrivalClock) advanceSegment() {
	if c.times == 0 {
		segments := c.Segments
		c.played++
		c.segment++
		if c.played >= len(segments) && (c.random.IntN(segmentRun) == 0 || c.segment == len(segments)) {
			c.segment = c.random.IntN(len(segments))
		}
		c.times = segments[c.segment].times()
	}
	c.times--
}
