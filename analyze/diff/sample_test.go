package diff

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"moontide/analyze/measure"
	"moontide/trace/stats"
)

// Statistics of a resample equal those of its values listed one by one.
func TestSampleIsItsValues(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var items []item
		for range rapid.IntRange(1, 3*stride).Draw(rt, "n") {
			items = append(items, item{float64(rapid.IntRange(-20, 20).Draw(rt, "value")), uint8(rapid.IntRange(0, stretches-1).Draw(rt, "stretch"))})
		}
		var w weights
		for i := range w {
			w[i] = uint8(rapid.IntRange(0, 3).Draw(rt, "times"))
		}
		var values []float64
		for _, it := range items {
			for range w[it.stretch] {
				values = append(values, it.value)
			}
		}
		s := newSample(slices.Clone(items))
		p := rapid.Float64Range(0, 1).Draw(rt, "p")
		got := []float64{s.quantile(p, &w), s.sums.mean(&w)}
		if len(values) == 0 {
			if !math.IsNaN(got[0]) || !math.IsNaN(got[1]) {
				rt.Fatalf("%v of nothing", got)
			}
			return
		}
		d := stats.Of(values)
		for i, want := range []float64{d.Quantile(p), d.Mean} {
			if math.Abs(got[i]-want) > 1e-9*(1+math.Abs(want)) {
				rt.Errorf("statistic %d is %v, want %v", i, got[i], want)
			}
		}
	})
}

// Stretches are consecutive and have about equal numbers of rows.
func TestRowsAreCutIntoStretches(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		first, n := rapid.IntRange(0, 1<<40).Draw(rt, "first"), rapid.IntRange(1, 200).Draw(rt, "rows")
		s := newSide(nil, []*Run{{requests: []request{{Request: measure.Request{Row: first}}, {Request: measure.Request{Row: first + n - 1}}}}})
		var counts [stretches]int
		last := uint8(0)
		for row := first; row < first+n; row++ {
			stretch := s.stretch(row)
			if stretch < last {
				rt.Fatalf("row %d is in stretch %d, behind %d", row, stretch, last)
			}
			counts[stretch]++
			last = stretch
		}
		if least, most := slices.Min(counts[:]), slices.Max(counts[:]); most-least > 1 {
			rt.Errorf("stretches of %d to %d rows", least, most)
		}
	})
}

// Too many gaps are thinned evenly.
func TestGapsAreThinned(t *testing.T) {
	r := &Run{gapEvery: 1}
	for i := range 5 {
		r.addGaps(i, slices.Repeat([]time.Duration{time.Duration(i) * time.Millisecond}, maxGaps/4-1))
	}
	if r.gapEvery != 2 || len(r.gaps) > maxGaps {
		t.Fatalf("%d gaps are kept, every %d.", len(r.gaps), r.gapEvery)
	}
	kept := map[int]int{}
	for _, gap := range r.gaps {
		if kept[gap.row]++; gap.ms != float64(gap.row) {
			t.Fatalf("row %d has a gap of %v ms", gap.row, gap.ms)
		}
	}
	for row, n := range kept {
		if n != maxGaps/8-1 && n != maxGaps/8 {
			t.Errorf("row %d: %d gaps are kept", row, n)
		}
	}
}
