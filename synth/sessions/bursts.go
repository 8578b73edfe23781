package sessions

import (
	"math"
	"math/rand/v2"
	"slices"

	"moontide/synth"
	"moontide/trace/stats"
)

// bursts are requests that arrive almost at once, such as those of one timestamp of a
// coarse clock in the capture of a replay. They are learned as if they arrived at one
// instant, and drawn apart again.
type bursts struct {
	TickMs float64 `json:"tick_ms"` // drawn times are multiples of it; 0 if they have no grid
	// Offsets holds the time from the instant to the first request; empty if instants
	// have no grid, and are the times of their first requests.
	Offsets joint `json:"offsets"`
	// Gaps holds the gap to the request before, given how many are before it in the burst.
	Gaps joint `json:"gaps"`
}

const (
	gapKnown = 1  // known values of the gaps of a burst
	maxPlace = 64 // beyond it, places in a burst count the same
	// maxShuffled is the maximum number of turns of a burst held in memory.
	maxShuffled = 1 << 12
)

func (b *bursts) prepare() {
	if b == nil {
		return
	}
	for _, j := range []joint{b.Offsets, b.Gaps} {
		for i := range j {
			j[i].prepare()
		}
	}
}

func (b *bursts) check() {
	if b == nil {
		return
	}
	checkIn(timeRange, b.TickMs, "bursts.tick_ms")
	checkJoint("bursts.offsets", b.Offsets, 0, span{-timeRange.high, timeRange.high})
	checkJoint("bursts.gaps", b.Gaps, gapKnown, timeRange)
	if len(b.Gaps) == 0 {
		synth.Fail("bursts.gaps: no values")
	}
}

// burstDrawing draws turns from those of instants. Those of a burst come in random order,
// but after the turns that they continue, and each at its own time.
type burstDrawing struct {
	*bursts
	draw          func() drawnTurn
	order         *rand.Rand
	offsets, gaps *jointSampler

	instant float64     // of the burst
	turns   []drawnTurn // of it
	place   int         // of the next turn among them
	before  int         // turns of the burst before these
	ahead   drawnTurn   // after them
	time    float64     // of the last turn
}

// inBursts returns a drawing of the turns that draw returns.
func (m *Model) inBursts(seed uint64, draw func() drawnTurn) *burstDrawing {
	b, random, requests := m.file.Bursts, stats.NewStream(seed, "times in bursts"), float64(m.SourceRequests())
	return &burstDrawing{
		bursts: b, draw: draw, order: stats.NewStream(seed, "order in bursts"),
		offsets: newJointSampler(b.Offsets, random, requests), gaps: newJointSampler(b.Gaps, random, requests),
		instant: math.NaN(), ahead: draw(),
	}
}

// next draws the next turn. Times do not decrease.
func (d *burstDrawing) next() drawnTurn {
	if d.place == len(d.turns) {
		d.drawBurst()
	}
	t := d.turns[d.place]
	if place := d.before + d.place; place == 0 {
		d.time = max(d.time, d.onGrid(d.instant+sum(d.offsets.draw())))
	} else {
		d.time += d.onGrid(max(0, d.gaps.draw(min(float64(place), maxPlace))[0]))
	}
	d.place++
	t.stamp = d.time
	return t
}

// drawBurst draws the turns of the next burst or, of a large one, the next maxShuffled.
func (d *burstDrawing) drawBurst() {
	d.before += len(d.turns)
	if at := microseconds(d.ahead.stamp); at != d.instant {
		d.instant, d.before = at, 0
	}
	d.turns, d.place = d.turns[:0], 0
	for len(d.turns) < maxShuffled && microseconds(d.ahead.stamp) == d.instant {
		d.turns = append(d.turns, d.ahead)
		d.ahead = d.draw()
	}
	slices.SortStableFunc(d.turns, func(a, b drawnTurn) int { return indicator(a.atOnce) - indicator(b.atOnce) })
	free, _ := slices.BinarySearchFunc(d.turns, 1, func(t drawnTurn, want int) int { return indicator(t.atOnce) - want })
	d.order.Shuffle(free, func(i, k int) { d.turns[i], d.turns[k] = d.turns[k], d.turns[i] })
}

func (b *bursts) onGrid(ms float64) float64 {
	if b.TickMs == 0 {
		return ms
	}
	return math.Round(ms/b.TickMs) * b.TickMs
}
