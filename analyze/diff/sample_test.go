package diff

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

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
		got := []float64{s.quantile(p, &w), s.sums.mean(&w), s.sums.std(&w)}
		if len(values) == 0 {
			if !math.IsNaN(got[0]) || !math.IsNaN(got[1]) {
				rt.Fatalf("%v of nothing", got)
			}
			return
		}
		d := stats.Of(values)
		for i, want := range []float64{d.Quantile(p), d.Mean, d.Std} {
			if math.Abs(got[i]-want) > 1e-9*(1+math.Abs(want)) {
				rt.Errorf("statistic %d is %v, want %v", i, got[i], want)
			}
		}
	})
}

// Stretches are consecutive and have equal numbers of rows, whatever the row
// numbers.
func TestRowsAreCutIntoStretches(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		drawn := rapid.SliceOfNDistinct(rapid.IntRange(-1000, 1<<40), 0, 200, rapid.ID[int]).Draw(rt, "rows")
		slices.Sort(drawn)
		r := &Run{}
		for _, row := range drawn {
			r.requests = append(r.requests, request{row: row})
		}
		all := rowsOf([]*Run{r})
		var counts [stretches]int
		last := uint8(0)
		for i, row := range all {
			stretch := all.stretch(i)
			if stretch < last {
				rt.Fatalf("row %d is in stretch %d, behind %d", row, stretch, last)
			}
			counts[stretch]++
			last = stretch
		}
		if least, most := slices.Min(counts[:]), slices.Max(counts[:]); len(drawn) > 0 && most-least > 1 {
			rt.Errorf("stretches of %d to %d rows", least, most)
		}
	})
}

// Too many gaps are thinned evenly, and each request keeps its own gaps.
func TestGapsAreThinned(t *testing.T) {
	r := &Run{}
	for i := range 5 {
		q := request{row: i}
		q.gapsFrom, q.gapsTo = r.addGaps(slices.Repeat(msList(i), maxGaps/4-1))
		r.requests = append(r.requests, q)
	}
	if r.gaps.every != 2 || len(r.gaps.values) > maxGaps {
		t.Fatalf("%d gaps are kept, every %d.", len(r.gaps.values), r.gaps.every)
	}
	for _, q := range r.requests {
		own := r.gaps.values[q.gapsFrom:q.gapsTo]
		if n := len(own); n != maxGaps/8-1 && n != maxGaps/8 {
			t.Errorf("row %d: %d gaps are kept", q.row, len(own))
		}
		for _, gap := range own {
			if gap != float64(q.row) {
				t.Fatalf("row %d has a gap of row %v", q.row, gap)
			}
		}
	}
}

func TestSpread(t *testing.T) {
	for _, tc := range []struct {
		from, to, n float64
		want        map[int]float64
	}{
		{1.5, 3.5, 8, map[int]float64{1: 2, 2: 4, 3: 2}},
		{2, 2, 5, map[int]float64{2: 5}},
		{31, 33, 6, map[int]float64{31: 3}}, // half of the tokens came after the window
		{-1, 1, 6, map[int]float64{0: 3}},
		{32, 32, 4, map[int]float64{31: 4}}, // the very end
		{-3, -3, 4, nil},
	} {
		var got, want [stretches]float64
		spread(&got, tc.from, tc.to, tc.n)
		for i, n := range tc.want {
			want[i] = n
		}
		if got != want {
			t.Errorf("%v from %v to %v: %v", tc.n, tc.from, tc.to, got)
		}
	}
}

func msList(ms int) []time.Duration { return []time.Duration{time.Duration(ms) * time.Millisecond} }
