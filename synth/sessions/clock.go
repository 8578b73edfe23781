package sessions

import (
	"math"
	"math/rand/v2"
	"slices"
)

// clock is when the requests with a timestamp arrived.
type clock struct {
	// Gaps are before each of them, in ms. The first is that between the last one and the
	// repetition of the source.
	Gaps   []float64 `json:"gaps_ms"`
	Whole  bool      `json:"whole_ms"` // times are whole milliseconds
	Coarse bool      `json:"coarse"`   // times are on a grid: gaps and delays keep their values

	at []float64 // in ms, the first 0
}

// setTimes derives the times from the gaps.
func (c *clock) setTimes() {
	c.at = make([]float64, len(c.Gaps))
	for i := range c.at[1:] {
		c.at[i+1] = c.at[i] + c.Gaps[i+1]
	}
}

// period returns the time after which the source is repeated, in ms.
func (c *clock) period() float64 { return c.at[len(c.at)-1] + c.Gaps[0] }

// longSpan is the share of the source's duration from which spans of time keep their value.
const longSpan = .01

// vary returns another span of time near one.
func (c *clock) vary(span float64, of values, sigma float64, random *rand.Rand) float64 {
	if c.Coarse || span > longSpan*c.period() {
		return span
	}
	return microseconds(of.move(span, span*lognormal(random, sigma)))
}

// arrivals draws times: those of the source again and again, with varied gaps.
type arrivals struct {
	*clock
	random   *rand.Rand
	gaps     []float64 // of the source, in order
	sorted   values    // these
	next     int       // arrival
	at, then float64   // of the arrival before that, and its own
}

// newArrivals returns the arrivals of the sessions of a model.
func (m *Model) newArrivals(random *rand.Rand) *arrivals {
	at := m.sorted(func(t *turn) (float64, bool) { return m.Clock.at[t.Arrival], t.Timing != delayOnly })
	a := &arrivals{clock: &m.Clock, random: random, then: at[0]}
	before := at[len(at)-1] - m.Clock.period() // in the repetition before
	for _, now := range at {
		a.gaps = append(a.gaps, microseconds(now-before))
		before = now
	}
	a.sorted = slices.Sorted(slices.Values(a.gaps))
	return a
}

// microseconds rounds ms to them.
func microseconds(ms float64) float64 { return math.Round(ms*1000) / 1000 }

// time returns the time of a place among the arrivals, which is no earlier than the one
// before. Between two arrivals it is between their times, unless the clock is coarse.
func (a *arrivals) time(place float64) float64 {
	for ; float64(a.next) <= place; a.next++ {
		a.at = a.then
		a.then += a.vary(a.gaps[(a.next+1)%len(a.gaps)], a.sorted, lengthJitter, a.random)
	}
	at := a.at
	if !a.Coarse {
		at += (place - float64(a.next-1)) * (a.then - a.at)
	}
	if a.Whole {
		return math.Round(at)
	}
	return microseconds(at)
}
