package figure

import (
	"math"
	"strconv"
	"strings"

	"moontide/trace/stats"
)

// A span is the range that an axis shows, in the values of the axis.
type span struct{ lo, hi float64 }

func emptySpan() span { return span{math.Inf(1), math.Inf(-1)} }

func (s span) empty() bool { return s.lo > s.hi }

func (s *span) include(v float64) {
	s.lo, s.hi = min(s.lo, v), max(s.hi, v)
}

// huge is the largest value drawn: differences of such values are finite.
const huge = 1e300

func (a Axis) drawable(v float64) bool {
	if a.Log {
		return v >= 1/huge && v <= huge
	}
	return v >= -huge && v <= huge
}

// extent returns the ranges of a figure's data.
func (f *Figure) extent() (x, y span) {
	x, y = emptySpan(), emptySpan()
	add := func(atX, atY float64) {
		if f.X.drawable(atX) && f.Y.drawable(atY) {
			x.include(atX)
			y.include(atY)
		}
	}
	for i := range f.Series {
		s := &f.Series[i]
		for i := range s.points() {
			if add(s.X[i], s.Y[i]); s.Kind == Bars {
				add(s.X[i+1], s.Y[i])
			}
		}
	}
	for _, m := range f.Marks {
		switch {
		case x.empty():
		case m.OnY && f.Y.drawable(m.At):
			y.include(m.At)
		case !m.OnY && f.X.drawable(m.At):
			x.include(m.At)
		}
	}
	return x, y
}

// limits returns the range that the axis shows, which is never empty.
func (a Axis) limits(data span, vertical bool) span {
	r := data
	if r.empty() {
		r = span{0, 1}
		if a.Log {
			r = span{1, 10}
		}
	}
	if !a.Log && r.lo > 0 && (vertical || r.lo < 0.3*r.hi) {
		r.lo = 0
	}
	r = a.widened(r)
	if vertical {
		r = a.padded(r)
	}
	return a.withEnds(r)
}

// widened widens a range that is too narrow for distinct ticks.
func (a Axis) widened(r span) span {
	if a.Log {
		if r.hi/r.lo < 1+1e-9 {
			r.lo, r.hi = max(r.lo/2, 1/huge), min(r.hi*2, huge)
		}
		return r
	}
	size := max(math.Abs(r.lo), math.Abs(r.hi))
	switch {
	case size == 0:
		r.hi = 1
	case size < 1/huge:
		r = span{0, 1 / huge}
	case r.hi-r.lo < 1e-9*size:
		r.lo, r.hi = r.lo-size/2, r.hi+size/2
	}
	return r
}

func (a Axis) padded(r span) span {
	if a.Log {
		pad := math.Pow(r.hi/r.lo, 0.05)
		return span{max(r.lo/pad, 1/huge), min(r.hi*pad, huge)}
	}
	step := a.Quantity.step((r.hi-r.lo)/10, r.hi)
	whole := a.Quantity == Percent && r.hi <= 1
	// The tolerance must not cut anything off.
	r.hi = max(r.hi, math.Ceil(r.hi/step-1e-9)*step)
	r.lo = min(r.lo, math.Floor(r.lo/step+1e-9)*step)
	if whole {
		r.hi = min(r.hi, 1)
	}
	return r
}

// withEnds applies valid Min and Max.
func (a Axis) withEnds(r span) span {
	limits := r
	if a.Min != nil && a.drawable(*a.Min) {
		limits.lo = *a.Min
	}
	if a.Max != nil && a.drawable(*a.Max) {
		limits.hi = *a.Max
	}
	if !(limits.lo < limits.hi) {
		return r
	}
	return a.widened(limits)
}

// A scale places values of an axis between two coordinates.
type scale struct {
	log      bool
	span     span
	from, to float64
}

func newScale(a Axis, r span, from, to float64) scale {
	if a.Log {
		r = span{math.Log10(r.lo), math.Log10(r.hi)}
	}
	return scale{log: a.Log, span: r, from: from, to: to}
}

// farAway bounds coordinates to keep arithmetic exact enough.
const farAway = 1e6

// at returns the coordinate of v, far below the lower end for 0 on a log axis.
func (s scale) at(v float64) float64 {
	if s.log {
		v = math.Log10(max(v, 0))
	}
	share := (v - s.span.lo) / (s.span.hi - s.span.lo)
	return s.from + min(max(share*(s.to-s.from), -farAway), farAway)
}

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

// Text formats a value as in ticks and tooltips, with three significant digits in a
// suitable unit: 1.25 s, 80 GiB, 36.6 %, 12.3k.
func (a Axis) Text(v float64) string { return a.Quantity.text(v) }

type unit struct {
	size float64
	name string
}

const (
	second = 1.0
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// units are in ascending order.
var units = map[Quantity][]unit{
	Number:   {{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}},
	Bytes:    {{1, " B"}, {1 << 10, " KiB"}, {1 << 20, " MiB"}, {1 << 30, " GiB"}, {1 << 40, " TiB"}, {1 << 50, " PiB"}},
	Percent:  {{0.01, " %"}},
	Duration: {{1e-9, " ns"}, {1e-6, " µs"}, {1e-3, " ms"}, {second, " s"}, {minute, " min"}, {hour, " h"}, {day, " d"}},
}

var one = unit{1, ""}

// unitFor returns the largest unit up to v.
func (q Quantity) unitFor(v float64) unit {
	v = math.Abs(v)
	if units[q] == nil || q == Number && v >= 1e15 {
		return one // written with an exponent
	}
	best := units[q][0]
	for _, u := range units[q] {
		// The tolerance keeps 0.1 + 0.2 style errors from writing 1000 ms.
		if v*(1+1e-9) >= u.size {
			best = u
		}
	}
	return best
}

func (q Quantity) text(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 1):
		return "∞"
	case math.IsInf(v, -1):
		return "−∞"
	case v == 0:
		return "0"
	}
	// Up to four digits are easier to read as they are: 1536, not 1.54k.
	if q == Number && math.Abs(v) < 10_000 && v == math.Trunc(v) {
		return written(v, 'f', 0)
	}
	u := q.unitFor(v)
	return significant(v/u.size) + u.name
}

// significant formats v with three significant digits or all before the point.
func significant(v float64) string {
	switch abs := math.Abs(v); {
	case abs >= 1e5 || abs < 1e-3:
		return written(v, 'g', 3)
	case abs >= 100:
		return written(v, 'f', 0)
	}
	return written(stats.Significant(v, 3), 'f', -1)
}

// exactly formats v with the number of decimals that its step requires.
func exactly(v, step float64) string {
	if v == 0 {
		return "0"
	}
	decimals := 0
	if step < 1 {
		decimals = int(math.Ceil(-math.Log10(step) - 1e-9))
	}
	if decimals > 9 || math.Abs(v) >= 1e9 {
		return written(v, 'g', 12)
	}
	return written(v, 'f', decimals)
}

// written formats a number with a true minus sign and a short exponent: 1e−7.
func written(v float64, format byte, digits int) string {
	s := strconv.FormatFloat(v, format, digits, 64)
	if !strings.ContainsAny(s, "e-") {
		return s
	}
	return shorter.Replace(s)
}

var shorter = strings.NewReplacer("e+0", "e", "e+", "e", "e-0", "e−", "-", "−")
