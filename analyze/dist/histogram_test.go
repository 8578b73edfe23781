package dist_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"moontide/analyze/dist"
)

func TestHistogram(t *testing.T) {
	tests := []struct {
		name   string
		n      int
		values []float64
		log    bool
		edges  []float64
		counts []int
	}{
		{"no values", 4, nil, false, nil, nil},
		{"one value", 4, []float64{7, 7}, false, []float64{6.5, 7.5}, []int{2}},
		{"linear", 4, []float64{0, 1, 2, 2, 3, 4}, false, []float64{0, 1, 2, 3, 4}, []int{1, 1, 2, 2}},
		{"just linear", 2, []float64{1, 20}, false, []float64{1, 10.5, 20}, []int{1, 1}},
		{"just logarithmic", 1, []float64{1, 20.1}, true, []float64{1, 20.1}, []int{2}},
		{"logarithmic", 3, []float64{1, 9.9, 11, 99, 101, 1000}, true, []float64{1, 10, 100, 1000}, []int{2, 2, 2}},
		{"logarithmic with zeros", 2, []float64{0, 0, 2, 19, 21, 200}, true, []float64{0, 2, 20, 200}, []int{2, 2, 2}},
		{"negative is linear", 2, []float64{-1, 1, 99}, false, []float64{-1, 49, 99}, []int{2, 1}},
		{"no columns asked for", 0, []float64{1, 2}, false, []float64{1, 2}, []int{2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := dist.Of(slices.Clone(test.values))
			bins := dist.BinsFor(test.n, d)
			if bins.Log != test.log || !slices.EqualFunc(bins.Edges, test.edges, near) {
				t.Errorf("bins %+v, want %v, log %v", bins, test.edges, test.log)
			}
			if got := d.Histogram(bins); !slices.Equal(got, test.counts) {
				t.Errorf("counts %v, want %v", got, test.counts)
			}
		})
	}
}

func TestBinsCoverAll(t *testing.T) {
	a, b := dist.Of([]float64{3, 4}), dist.Of([]float64{10, 43})
	bins := dist.BinsFor(4, a, dist.Distribution{}, b)
	if want := []float64{3, 13, 23, 33, 43}; !slices.Equal(bins.Edges, want) {
		t.Errorf("edges %v, want %v", bins.Edges, want)
	}
	if got := b.Histogram(bins); !slices.Equal(got, []int{1, 0, 0, 1}) {
		t.Errorf("counts %v", got)
	}
	if got := dist.Of([]float64{2, 5, 44}).Histogram(bins); !slices.Equal(got, []int{1, 0, 0, 0}) {
		t.Errorf("values outside the columns were counted: %v", got)
	}
}

func TestHistogramCountsEveryValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(-10, 10), rapid.Float64Range(0, 1e15), rapid.Just(0.0)), 1, 40).Draw(t, "values")
		d := dist.Of(values)
		bins := dist.BinsFor(rapid.IntRange(1, 60).Draw(t, "n"), d)
		if !slices.IsSorted(bins.Edges) || math.IsNaN(bins.Edges[len(bins.Edges)-1]) {
			t.Fatalf("edges %v", bins.Edges)
		}
		sum := 0
		for _, n := range d.Histogram(bins) {
			sum += n
		}
		if sum != d.Count {
			t.Fatalf("%d of %d values are in a column of %v", sum, d.Count, bins.Edges)
		}
	})
}
