package sessions

import (
	"math"
	"slices"

	"moontide/synth"
)

// timetable lists the timestamps of a source with few of them, in order: the requests
// and the time in ms. Each has so many requests that it is not the time of a single one.
//
// Such timestamps do not tell when the requests of a session follow each other, but
// their order does: requests count as arriving evenly, and waits are in that time.
type timetable [][2]float64

// newTimetable returns the timetable of timestamps and the requests at each, or none if
// these are many, or few requests.
func newTimetable(at []float64, requests []int) (t timetable) {
	if len(at) < 2 || len(at) >= minTimes || slices.Min(requests) < minRequests {
		return nil
	}
	for i := range at {
		t = append(t, [2]float64{float64(requests[i]), at[i]})
	}
	return t
}

func (t timetable) requests() (n float64) {
	for _, at := range t {
		n += at[0]
	}
	return n
}

// dropFewTimes makes one client of those that the rows name if there are few timestamps,
// which only one keeps.
func (f *fitter) dropFewTimes() {
	if len(f.parts) < 2 || f.untimed > 0 || newTimetable(distinct(f.times(), nil)) == nil {
		return
	}
	f.note("%d clients that the rows name are learned as one, which keeps the few timestamps", len(f.parts))
	f.parts, f.file.ClientKeys = nil, nil
}

// spread makes the rows of a source with few timestamps arrive evenly.
func (f *fitter) spread() {
	if f.untimed > 0 {
		return
	}
	if f.timetable = newTimetable(distinct(f.times(), nil)); f.timetable == nil {
		return
	}
	times := f.times()
	duration := times[len(times)-1] + gapBetween(times)
	for i := range f.rows {
		at := rounded(float64(i)/float64(len(f.rows))*duration, 15)
		f.rows[i].at, f.rows[i].phase = at, at
	}
}

// times returns the times of all rows.
func (f *fitter) times() []float64 {
	times := make([]float64, len(f.rows))
	for i := range f.rows {
		times[i] = f.rows[i].at
	}
	return times
}

// gapBetween returns the mean gap between distinct times.
func gapBetween(times []float64) float64 {
	at, _ := distinct(times, nil)
	return (at[len(at)-1] - at[0]) / float64(max(1, len(at)-1))
}

// drawTimestamp draws the requests at the next timestamp of the timetable.
func (c *arrivalClock) drawTimestamp() {
	if c.segment == len(c.Timetable) {
		if c.hold {
			c.again(c.now)
			c.segment = c.heldSegment
			c.shift = c.time - c.Timetable[c.segment-1][1]
		} else {
			c.again(c.begin + c.period)
			c.segment, c.now, c.shift = 0, c.begin, c.begin
		}
	}
	at := c.Timetable[c.segment]
	c.segment++
	c.deficit += at[0] * c.speed
	c.left = int(min(c.deficit, maxAtOnce))
	c.deficit -= math.Floor(c.deficit)
	c.time = max(c.time, c.shift+at[1])
	c.apart = (c.PeriodMs + c.GapMs) / c.Timetable.requests() / c.speed
}

// held returns the first timestamp of the last regime, and when its requests begin in
// a source of a duration.
func (t timetable) held(duration float64) (first int, from float64) {
	last := len(t) - 1
	for first = last; first > 1 && t[first-1][1] > (1-minLastRegime)*t[last][1]; {
		first--
	}
	return first, t[:first].requests() / t.requests() * duration
}

func (t timetable) check() {
	if len(t) == 1 {
		synth.Fail("arrivals.timetable: one timestamp, want none or several")
	}
	for i, n := range t {
		checkWhole(countRange, n[0], "arrivals.timetable[%d][0], the requests", i)
		checkIn(span{t[max(i-1, 0)][1], timeRange.high}, n[1], "arrivals.timetable[%d][1], the time", i)
	}
}
