package figure

import "math"

type tick struct {
	at    float64
	label string
}

// ticks returns round values of the range in order: the densest set of at most about
// room whose labels fit.
func (a Axis) ticks(r span, room int, fits func([]tick) bool) []tick {
	if a.Log {
		if t := a.Quantity.logTicks(r, room, fits); t != nil {
			return t
		}
	}
	for n := max(room, 1); n > 1; n-- {
		if t := a.Quantity.linearTicks(r, n); len(t) > 1 && fits(t) {
			return t
		}
	}
	t := a.Quantity.linearTicks(r, 2)
	return t[:min(len(t), 1)]
}

// linearTicks divides the range into about n steps.
func (q Quantity) linearTicks(r span, n int) []tick {
	largest := max(math.Abs(r.lo), math.Abs(r.hi))
	step := q.step((r.hi-r.lo)/float64(n), largest)
	u := q.tickUnit(step, largest)
	first, last := math.Ceil(r.lo/step-1e-9), math.Floor(r.hi/step+1e-9)
	var t []tick
	// Counting in whole steps keeps rounding errors from adding up.
	for i := range int(last-first) + 1 {
		v := (first + float64(i)) * step
		label := exactly(v/u.size, step/u.size)
		if label != "0" {
			label += u.name
		}
		t = append(t, tick{v, label})
	}
	return t
}

func (q Quantity) tickUnit(step, largest float64) unit {
	switch {
	case q == Number && largest < 10_000:
		return one
	case q == Duration && largest >= minute:
		// 90 s is better than 1.5 min, so minutes and up only count wholes.
		return q.unitFor(max(step, second))
	default:
		return q.unitFor(largest)
	}
}

var clockSteps = []float64{
	second, 2 * second, 5 * second, 10 * second, 20 * second, 30 * second,
	minute, 2 * minute, 5 * minute, 10 * minute, 20 * minute, 30 * minute,
	hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day,
}

// step returns the smallest round step of at least least. largest determines the
// unit.
func (q Quantity) step(least, largest float64) float64 {
	switch q {
	case Bytes:
		u := q.unitFor(largest)
		step := decimalStep(least/u.size) * u.size
		if u.size == 1 && least > 0.1 {
			return max(step, 1) // bytes are indivisible
		}
		return step
	case Duration:
		if least <= second {
			break
		}
		for _, step := range clockSteps {
			if step >= least*(1-1e-9) {
				return step
			}
		}
		return decimalStep(least/day) * day
	}
	return decimalStep(least)
}

// decimalStep returns 1, 2 or 5 times a power of ten.
func decimalStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= least*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// logTicks returns the densest ladder that fits, nil if none has two rungs.
func (q Quantity) logTicks(r span, room int, fits func([]tick) bool) []tick {
	for _, rungs := range q.ladders(r) {
		var t []tick
		for _, v := range rungs {
			t = append(t, tick{v, q.text(v)})
		}
		if len(t) > 1 && len(t) <= max(room, 2) && fits(t) {
			return t
		}
	}
	return nil
}

// ladders returns sets of round values within the range, densest first.
func (q Quantity) ladders(r span) [][]float64 {
	var sets [][]float64
	decades := math.Log10(r.hi / r.lo)
	switch {
	case q == Bytes:
		for _, stride := range []float64{1, 2, 5, 10, 20, 50, 100, 200, 500} {
			sets = append(sets, powers(r, 2, stride, 1))
		}
		return sets
	case q == Duration && r.hi > minute:
		if decades <= 2.2 {
			sets = append(sets, within(r, append(powers(span{r.lo, second / 2}, 10, 1, 1, 2, 5), clockSteps...)))
		}
		sets = append(sets, within(r, clockLadder), within(r, unitLadder))
	case decades <= 2.2:
		sets = append(sets, powers(r, 10, 1, 1, 2, 5))
	}
	for _, stride := range []float64{1, 2, 3, 6, 12, 30, 60, 120, 300} {
		sets = append(sets, powers(r, 10, stride, 1))
	}
	return sets
}

// Ladders of times continue where people stop counting in decades of a second; one has
// little room.
var (
	clockLadder = []float64{
		1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, second, 10 * second,
		minute, 10 * minute, hour, 6 * hour, day, 10 * day, 100 * day, 1000 * day,
	}
	unitLadder = []float64{1e-9, 1e-6, 1e-3, second, minute, hour, day, 100 * day}
)

func within(r span, values []float64) []float64 {
	var in []float64
	for _, v := range values {
		if v >= r.lo*(1-1e-9) && v <= r.hi*(1+1e-9) {
			in = append(in, v)
		}
	}
	return in
}

// powers returns every stride-th power of base within the range, times the
// multiples.
func powers(r span, base, stride float64, multiples ...float64) []float64 {
	perStep := math.Log(base) * stride
	first, last := math.Floor(math.Log(r.lo)/perStep), math.Ceil(math.Log(r.hi)/perStep)
	var all []float64
	for k := first; k <= last; k++ {
		for _, m := range multiples {
			all = append(all, m*math.Pow(base, k*stride))
		}
	}
	return within(r, all)
}
