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
	FirstMs   float64 `json:"first_ms"`    // when the segments begin
	PeriodMs  float64 `json:"period_ms"`   // the source's duration; nothing arrives after the segments
	LastMs    float64 `json:"last_ms"`     // when the source's last regime of rate and lengths begins
	GapMs     float64 `json:"gap_ms"`      // the mean between the source's timestamps, and before it begins again
	// Timetable is used instead of segments and steps if there are few timestamps.
	Timetable timetable `json:"timetable,omitempty"`
	// OfSessions means that these are the arrivals of sessions, whose later turns
	// come after their own waits. Otherwise a turn that is due takes the next arrival.
	OfSessions bool `json:"of_sessions"`
	// Renewal is used instead of segments and steps by one of several clients.
	Renewal *renewal `json:"renewal,omitempty"`

	ofBursts bool // derived from the file: requests at a time are a burst
}

// segment is a part of the source with a steady rate: its requests, its ticks
// or gaps, and the mean requests per tick or ms per gap.
type segment [3]float64

func (s segment) times() float64 { return s[1] }
func (s segment) mean() float64  { return s[2] }

// length returns how long a segment takes, in ms.
func (s segment) length(a *arrivals) float64 {
	if a.ByTick {
		return s[1] * a.TickMs
	}
	return s[1] * s[2]
}

// jitter is an offset from the tick: the number of requests with it, and the
// offset in ms.
type jitter [2]float64

const (
	stepKnown = 2 // known values of steps
	// The number of ticks and gaps over which a deficit is compensated.
	ticksToCatchUp, gapsToCatchUp = 64, 512
	maxAtOnce                     = 1e6 // requests at one timestamp
	otherRegime                   = 10  // change of the rate, as a factor
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
	course
	random  *rand.Rand
	speed   float64       // multiple of the source's rate
	renewal *renewalClock // nil without a renewal process
	strata  []stratified  // of the sizes of bursts, for each leaf; nil without bursts

	now     float64 // of the tick or gap
	time    float64 // of the timestamp
	left    int     // requests left at it
	before  float64 // previous value
	deficit float64 // how far ticks or gaps were below their means

	// With a timetable:
	apart float64 // ms between requests
	shift float64 // of its times

	segment int     // or the next timestamp of the timetable
	times   float64 // ticks or gaps left in the segment
	since   float64 // when it begins in the source
}

func (a *arrivals) newClock(random *rand.Rand, speed float64, hold bool) *arrivalClock {
	c := &arrivalClock{arrivals: a, course: a.newCourse(hold), random: random, speed: speed}
	if a.Renewal != nil {
		c.renewal = a.Renewal.newClock(random)
	}
	if a.ofBursts && len(a.Steps) > 1 {
		c.strata = a.Steps[1].strata(math.Inf(1))
	}
	c.start()
	return c
}

// start draws the first requests of the source or of its repetition.
func (c *arrivalClock) start() {
	c.now = c.begin + c.FirstMs
	c.segment, c.times, c.since = 0, 0, c.FirstMs
	if len(c.Segments) > 0 {
		c.times = c.Segments[0].times() * c.speed
	}
	switch {
	case c.Renewal != nil:
		c.drawRenewal()
	case len(c.Timetable) > 0:
		c.drawTimestamp()
	case len(c.Steps) == 0:
		c.time, c.left = max(c.time, c.now), 1
	case c.ByTick:
		c.times = c.Segments[0].times()
		c.drawTick()
	default:
		c.left = c.requests(1)
		c.stamp()
	}
}

// next returns the timestamp of the next request in ms and the time at which it counts
// as arrived, which differ by a timetable. Neither decreases.
func (c *arrivalClock) next() (stamp, at float64) {
	for c.left == 0 {
		switch {
		case c.renewal != nil:
			c.drawRenewal()
		case len(c.Timetable) > 0:
			c.drawTimestamp()
		case len(c.Steps) == 0:
			c.drawEven()
		case c.ByTick:
			c.now += c.TickMs
			c.drawTick()
		default:
			c.drawGap()
		}
	}
	stamp = microseconds(c.time)
	c.left--
	if c.apart == 0 {
		return stamp, stamp
	}
	at = c.now
	c.now += c.apart
	return stamp, at
}

// microseconds rounds a time in ms to microseconds.
func microseconds(ms float64) float64 { return math.Round(ms*1000) / 1000 }

// draw returns the i-th value of steps.
func (c *arrivalClock) draw(i int, known ...float64) float64 {
	given := &c.Steps[i]
	leaf := given.leaf(known)
	if i == 1 && c.strata != nil { // the largest of very uneven bursts come as often as in the source
		return given.histograms[leaf].draw(c.strata[leaf].draw(c.random), c.random)
	}
	return given.histograms[leaf].draw(c.random.Float64(), c.random)
}

// drawEven draws the next of evenly spaced requests.
func (c *arrivalClock) drawEven() {
	c.now += c.MeanGapMs / c.speed
	if c.period > 0 && c.now > c.begin+c.period {
		c.again(c.begin + c.period)
		c.now = c.begin + c.FirstMs
	}
	c.time, c.left = max(c.time, c.now), 1
}

// drawTick draws the requests of a tick. Later ticks compensate for a deficit.
func (c *arrivalClock) drawTick() {
	if c.times <= 0 && c.nextSegment() {
		return
	}
	c.times--
	mean := c.Segments[c.segment].mean()
	c.before = c.draw(0, c.before, mean)
	mean *= c.speed
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
	if c.times <= 0 && c.nextSegment() {
		return
	}
	c.times--
	mean := c.Segments[c.segment].mean()
	gap := max(0, c.draw(0, c.before, mean))
	c.left = c.requests(gap)
	c.before = gap
	gap *= min(max(.5, 1+c.deficit/gapsToCatchUp), 2)
	c.deficit += 1 - gap
	c.now += gap * mean / c.speed
	c.stamp()
}

// nextSegment begins the next segment. After the last one, it starts again with the
// first, which it reports, or continues with the regime that is held.
func (c *arrivalClock) nextSegment() (started bool) {
	before := c.Segments[c.segment]
	c.since += before.length(c.arrivals)
	if c.segment++; c.segment == len(c.Segments) {
		c.again(c.now)
		if !c.hold {
			c.start()
			return true
		}
		c.segment, c.since = c.heldSegment, c.heldFrom
	}
	next := c.Segments[c.segment]
	c.times = next.times()
	if c.ByTick {
		return false
	}
	c.times *= c.speed
	// The gaps of a segment do not take exactly as long as in the source. Where the rate
	// changes a lot, lengths and templates have to change with it, and a deficit of gaps
	// of another size must not change these.
	if change := next.mean() / before.mean(); max(change, 1/change) > otherRegime {
		c.begin, c.deficit = c.now-c.since, 0
	}
	return false
}

// requests draws the number of requests at a timestamp after a gap.
func (c *arrivalClock) requests(gap float64) int {
	n := c.draw(1, c.before, c.Segments[c.segment].mean(), gap)
	return int(min(max(1, math.Round(n)), maxAtOnce))
}

// stamp sets the timestamp from the current time.
func (c *arrivalClock) stamp() {
	c.time = max(c.time, c.onGrid(c.now))
}

// onGrid moves a time to a tick and adds jitter, if timestamps have a grid.
func (c *arrivalClock) onGrid(at float64) float64 {
	if c.TickMs == 0 {
		return at
	}
	at = math.Round(at/c.TickMs) * c.TickMs
	return at + c.drawJitter(at)
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
