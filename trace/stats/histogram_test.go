package stats_test

import (
	"slices"
	"testing"

	"moontide/trace/stats"
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
		{"linear", 4, []float64{0.5, 1.5, 2.5, 2.5, 3.5, 4.5}, false, []float64{0.5, 1.5, 2.5, 3.5, 4.5}, []int{1, 1, 2, 2}},
		{"just linear", 2, []float64{1.1, 22}, false, []float64{1.1, 11.55, 22}, []int{1, 1}},
		{"just logarithmic", 1, []float64{1, 20.1}, true, []float64{1, 20.1}, []int{2}},
		{"whole", 4, []float64{0, 1, 2, 2, 3, 4}, false, []float64{0, 2, 4, 6}, []int{2, 3, 1}},
		{"few whole ones", 20, []float64{1, 2, 2, 4}, false, []float64{1, 2, 3, 4, 5}, []int{1, 2, 0, 1}},
		{"whole, just linear", 2, []float64{1, 20}, false, []float64{1, 11, 21}, []int{1, 1}},
		{"whole, just logarithmic", 1, []float64{1, 21}, true, []float64{1, 22}, []int{2}},
		{"whole and logarithmic", 8, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 21, 32}, true, []float64{1, 2, 3, 5, 8, 12, 19, 33}, []int{1, 1, 2, 3, 3, 0, 2}},
		{"logarithmic", 3, []float64{1, 9.9, 11, 99, 101, 1000}, true, []float64{1, 10, 100, 1000}, []int{2, 2, 2}},
		{"logarithmic with zeros", 2, []float64{0, 0, 2, 19, 21.5, 200}, true, []float64{0, 2, 20, 200}, []int{2, 2, 2}},
		{"negative is linear", 2, []float64{-1, 1, 99.5}, false, []float64{-1, 49.25, 99.5}, []int{2, 1}},
		{"no columns asked for", 0, []float64{1, 2}, false, []float64{1, 3}, []int{2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := stats.Of(slices.Clone(test.values))
			bins := stats.BinsFor(test.n, d)
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
	a, b := stats.Of([]float64{3, 4}), stats.Of([]float64{10.5, 43})
	bins := stats.BinsFor(4, a, stats.Sample{}, b)
	if want := []float64{3, 13, 23, 33, 43}; !slices.Equal(bins.Edges, want) {
		t.Errorf("edges %v, want %v", bins.Edges, want)
	}
	if got := b.Histogram(bins); !slices.Equal(got, []int{1, 0, 0, 1}) {
		t.Errorf("counts %v", got)
	}
	if got := stats.Of([]float64{2, 5, 44}).Histogram(bins); !slices.Equal(got, []int{1, 0, 0, 0}) {
		t.Errorf("values outside the bins were counted: %v", got)
	}
}
