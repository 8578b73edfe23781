package fit

import (
	"fmt"
	"math"
	"slices"
)

// selectRows gives each row its role.
func (f *fitter) selectRows() error {
	excluded := 0
	for i := range f.rows {
		r := &f.rows[i]
		switch {
		case r.Role == Excluded && !f.options.KeepContradictory:
			excluded++
		case slices.Contains(f.options.HeldOut, i):
			r.Role = HeldOut
		default:
			r.Role = Fitted
		}
	}
	for _, i := range f.options.HeldOut {
		if i < 0 || i >= len(f.rows) {
			return fmt.Errorf("fit: no measurement %d to hold out: there are %d", i, len(f.rows))
		}
	}
	if len(f.rows) == 0 {
		return fmt.Errorf("fit: no measurements")
	}
	if float64(excluded) > mostExcluded*float64(len(f.rows)) {
		return &RefusedError{f.rows}
	}
	if f.options.HeldOut == nil {
		f.holdOut()
	}
	return nil
}

// Default selection of rows to hold out.
const (
	fittedShare = 3 // one of so many rows is fitted,
	leastFitted = 8 // but at least this many; of fewer, one is held out
)

// holdOut selects rows to hold out. Fitted are the least and the most concurrency of
// the longest prompt and of the longest answer for its prompt, then those at the
// concurrencies that are furthest from the others.
func (f *fitter) holdOut() {
	var all []int
	for i, r := range f.rows {
		if r.Role == Fitted {
			all = append(all, i)
		}
	}
	count := max(leastFitted, (len(all)+fittedShare-1)/fittedShare)
	if len(all) <= count {
		count = len(all) - 1
	}
	if len(all) < 4 {
		return
	}
	var chosen []int
	choose := func(better func(a, b Load) float64) {
		best := -1
		for _, i := range all {
			if !slices.Contains(chosen, i) && (best < 0 || better(f.rows[i].Load, f.rows[best].Load) > 0) {
				best = i
			}
		}
		if best >= 0 && len(chosen) < count {
			chosen = append(chosen, best)
		}
	}
	first := func(keys ...float64) float64 {
		for _, k := range keys {
			if k != 0 {
				return k
			}
		}
		return 0
	}
	choose(func(a, b Load) float64 { return first(a.meanComputed()-b.meanComputed(), b.intensity()-a.intensity()) })
	choose(func(a, b Load) float64 { return first(a.meanComputed()-b.meanComputed(), a.intensity()-b.intensity()) })
	// Of the shape, because answers that stop early differ between measurements of one.
	answer := func(l Load) float64 { return float64(l.OSL) / float64(max(l.ISL, 1)) }
	choose(func(a, b Load) float64 { return first(answer(a)-answer(b), b.intensity()-a.intensity()) })
	choose(func(a, b Load) float64 { return first(answer(a)-answer(b), a.intensity()-b.intensity()) })
	for len(chosen) < count {
		gap := func(l Load) float64 {
			least := math.Inf(1)
			for _, i := range chosen {
				other := f.rows[i].Load
				distance := math.Abs(math.Log(l.intensity()/other.intensity())) + 0.3*math.Abs(math.Log(l.meanComputed()/other.meanComputed())) + 0.1*math.Abs(math.Log(l.meanOutput()/other.meanOutput()))
				least = min(least, distance)
			}
			return least
		}
		choose(func(a, b Load) float64 { return first(gap(a)-gap(b), a.intensity()-b.intensity()) })
	}
	for _, i := range all {
		if !slices.Contains(chosen, i) {
			f.rows[i].Role = HeldOut
		}
	}
}

// intensity orders loads of a shape: concurrency, or the rate of an open loop.
func (l Load) intensity() float64 {
	switch {
	case l.Rate > 0:
		return l.Rate
	case l.Concurrency > 0:
		return float64(l.Concurrency)
	case len(l.Requests) > 1:
		return float64(len(l.Requests)) / max(l.Requests[len(l.Requests)-1].Arrival.Seconds(), 1e-3)
	}
	return 1
}
