package sessions

import (
	"math"
	"slices"
)

// timetable lists the timestamps of a source with few of them, in order: the requests
// and the time in ms. Each has so many requests that it is not the time of a single one.
//
// Such timestamps do not tell when the requests of a session follow each other, but
// their order does: requests count as arriving evenly, at one timestamp 1 ms apart, and
// waits are in that time.
type timetable [][2]float64

// newTimetable returns the timetable of timestamps and the requests at each, or none if
// these are many, or few requests.
func newTimetable(at []float64, requests []int) (t timetable) {
	if len(at) >= minTimes || slices.Min(requests) < minRequests {
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

// keepFewTimes makes the rows of a source with few timestamps arrive evenly. Only one
// client keeps a timetable, so it is the only one unless several are asked for.
func (f *fitter) keepFewTimes(clients int) {
	if f.untimed > 0 || clients > 1 {
		return
	}
	times := f.times()
	if f.timetable = newTimetable(distinct(times, nil)); f.timetable == nil {
		return
	}
	if len(f.parts) > 1 {
		f.note("%d clients that the rows name are learned as one, which keeps the few timestamps", len(f.parts))
		f.parts, f.file.ClientKeys = nil, nil
	}
	duration := times[len(times)-1] + gapBetween(times)
	if len(f.timetable) == 1 {
		duration = float64(len(times))
	}
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
	if several := len(c.Timetable) > 1; c.segment == len(c.Timetable) {
		if c.hold && several {
			c.again(c.now)
			c.segment = c.heldSegment
			c.shift = c.time - c.Timetable[c.segment-1][1]
		} else {
			c.again(c.begin + c.period)
			c.segment, c.now = 0, c.begin
			if several { // a single timestamp stays the only one
				c.shift = c.begin
			}
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
	for i, n := range t {
		checkWhole(countRange, n[0], "arrivals.timetable[%d][0], the requests", i)
		checkIn(span{t[max(i-1, 0)][1], timeRange.high}, n[1], "arrivals.timetable[%d][1], the time", i)
	}
}
