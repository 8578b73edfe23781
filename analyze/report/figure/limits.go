package figure

import "math"

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

// contents holds the ranges of a figure's data.
type contents struct{ x, y span }

func (f *Figure) contents() contents {
	c := contents{x: emptySpan(), y: emptySpan()}
	for i := range f.Series {
		c.add(f, &f.Series[i])
	}
	if c.x.empty() || c.y.empty() {
		return c
	}
	for _, m := range f.Marks {
		if m.OnY && f.Y.drawable(m.At) {
			c.y.include(m.At)
		} else if !m.OnY && f.X.drawable(m.At) {
			c.x.include(m.At)
		}
	}
	return c
}

func (c *contents) add(f *Figure, s *Series) {
	for i := range s.points() {
		xs := s.X[i : i+1]
		if s.Kind == Bars {
			xs = s.X[i : i+2] // both edges
		}
		for _, x := range xs {
			if f.X.drawable(x) && f.Y.drawable(s.Y[i]) {
				c.x.include(x)
				c.y.include(s.Y[i])
			}
		}
	}
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
		r = a.airy(r)
	}
	return a.fixed(r)
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

func (a Axis) airy(r span) span {
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

// fixed applies valid Min and Max.
func (a Axis) fixed(r span) span {
	asked := r
	if a.Min != nil && a.drawable(*a.Min) {
		asked.lo = *a.Min
	}
	if a.Max != nil && a.drawable(*a.Max) {
		asked.hi = *a.Max
	}
	if !(asked.lo < asked.hi) {
		return r
	}
	return a.widened(asked)
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
