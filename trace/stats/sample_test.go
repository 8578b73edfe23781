package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	mstats "github.com/montanaflynn/stats"
	"pgregory.net/rapid"

	"moontide/trace/stats"
)

func near(a, b float64) bool {
	return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b))
}

func TestOf(t *testing.T) {
	tests := []struct {
		name   string
		values []float64
		// count, sum, mean, std, min, max
		want [6]float64
	}{
		{"no values", nil, [6]float64{}},
		{"one value", []float64{7}, [6]float64{1, 7, 7, 0, 7, 7}},
		// Deviations -3 -1 -1 -1 0 0 2 4: squares sum to 32, 32/8 = 4.
		{"population deviation", []float64{9, 2, 4, 4, 4, 5, 5, 7}, [6]float64{8, 40, 5, 2, 2, 9}},
		{"negative and zero", []float64{0, -4, 4}, [6]float64{3, 0, 0, math.Sqrt(32.0 / 3), -4, 4}},
		{"equal values", []float64{3, 3, 3}, [6]float64{3, 9, 3, 0, 3, 3}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := stats.Of(test.values)
			got := [6]float64{float64(d.Count), d.Sum, d.Mean, d.Std, d.Min, d.Max}
			for i := range got {
				if !near(got[i], test.want[i]) {
					t.Fatalf("count, sum, mean, std, min, max = %v, want %v", got, test.want)
				}
			}
		})
	}
}

func TestQuantile(t *testing.T) {
	tests := []struct {
		values []float64
		p      float64
		want   float64
	}{
		{nil, 0.5, 0},
		{nil, 0, 0},
		{nil, 1, 0},
		{[]float64{7}, 0.01, 7},
		{[]float64{7}, 0.99, 7},
		{[]float64{40, 10, 30, 20}, 0, 10},
		{[]float64{40, 10, 30, 20}, 1, 40},
		{[]float64{40, 10, 30, 20}, 0.5, 25},    // rank 1.5
		{[]float64{40, 10, 30, 20}, 0.25, 17.5}, // rank 0.75
		{[]float64{40, 10, 30, 20}, 0.9, 37},    // rank 2.7
		{[]float64{5, 1, 3}, 0.5, 3},            // a whole rank
		{[]float64{1, 2}, -0.1, 1},
		{[]float64{1, 2}, 1.1, 2},
		{[]float64{1, 2}, math.NaN(), 1},
	}
	for _, test := range tests {
		if got := stats.Of(slices.Clone(test.values)).Quantile(test.p); !near(got, test.want) {
			t.Errorf("Quantile(%v) of %v = %v, want %v", test.p, test.values, got, test.want)
		}
	}
}

// The library's percentile follows the same rule.
func TestQuantileIsThePercentileOfStats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 50).Draw(t, "values")
		percent := rapid.Float64Range(0.001, 100).Draw(t, "percent")
		want, err := mstats.Percentile(values, percent)
		if err != nil {
			t.Fatal(err)
		}
		if got := stats.Of(slices.Clone(values)).Quantile(percent / 100); !near(got, want) {
			t.Fatalf("Quantile(%v) = %v, want %v", percent/100, got, want)
		}
	})
}

func lognormal(n int) []float64 {
	random := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, n)
	for i := range values {
		values[i] = math.Exp(random.NormFloat64())
	}
	return values
}

func BenchmarkOf(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("values=%d", n), func(b *testing.B) {
			values := lognormal(n)
			scratch := make([]float64, n)
			for b.Loop() {
				copy(scratch, values) // Of leaves its slice sorted
				stats.Of(scratch)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/value")
		})
	}
}

// written draws repeated values, as a slice and with counts.
func written(t *rapid.T, name string) (values []float64, counted []stats.Counted) {
	for _, v := range rapid.SliceOfN(rapid.IntRange(-3, 30), 1, 12).Draw(t, name) {
		count := rapid.IntRange(0, 4).Draw(t, "count")
		counted = append(counted, stats.Counted{Value: float64(v), Count: count})
		values = append(values, slices.Repeat([]float64{float64(v)}, count)...)
	}
	return values, counted
}

// Of and OfCounts agree in every respect.
func TestOfCountsIsOfAllValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values, counted := written(t, "values")
		other, _ := written(t, "other")
		all, counts, others := stats.Of(values), stats.OfCounts(counted), stats.Of(other)
		if all.Count != counts.Count || !near(all.Sum, counts.Sum) || !near(all.Mean, counts.Mean) ||
			!near(all.Std, counts.Std) || all.Min != counts.Min || all.Max != counts.Max {
			t.Fatalf("%+v, want %+v", counts, all)
		}
		p := rapid.Float64Range(0, 1).Draw(t, "p")
		if got, want := counts.Quantile(p), all.Quantile(p); !near(got, want) {
			t.Fatalf("Quantile(%v) = %v, want %v", p, got, want)
		}
		bins := stats.BinsFor(rapid.IntRange(1, 8).Draw(t, "bins"), all, others)
		if got, want := counts.Histogram(bins), all.Histogram(bins); !slices.Equal(got, want) {
			t.Fatalf("histogram %v, want %v", got, want)
		}
		if all.Count > 0 && others.Count > 0 {
			if got, want := stats.KS(counts, others), stats.KS(all, others); got != want {
				t.Fatalf("KS %v, want %v", got, want)
			}
			if got, want := stats.Wasserstein(others, counts), stats.Wasserstein(others, all); got != want {
				t.Fatalf("Wasserstein %v, want %v", got, want)
			}
		}
	})
}

// Few values are described exactly as by Of and OfCounts; of many, quantiles are rounded.
func TestCollector(t *testing.T) {
	for _, n := range []int{0, 1, 1000, 1<<20 + 1000} {
		random := rand.New(rand.NewPCG(1, 1))
		var once, counted stats.Collector
		var values []float64
		var counts []stats.Counted
		for i := range n {
			value := math.Exp(10 * random.NormFloat64())
			if i%3 == 0 {
				value = -float64(random.IntN(300_000))
			}
			times := 1 + i%2
			once.Add(value)
			counted.AddN(value, times)
			values, counts = append(values, value), append(counts, stats.Counted{Value: value, Count: times})
		}
		compareSamples(t, once.Sample(), stats.Of(values))
		compareSamples(t, counted.Sample(), stats.OfCounts(counts))
	}
}

func compareSamples(t *testing.T, got, want stats.Sample) {
	t.Helper()
	if got.Count != want.Count || got.Min != want.Min || got.Max != want.Max {
		t.Fatalf("got %d values from %v to %v, want %d from %v to %v", got.Count, got.Min, got.Max, want.Count, want.Min, want.Max)
	}
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 4e-6*math.Abs(want) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("mean", got.Mean, want.Mean)
	near("std", got.Std, want.Std)
	near("sum", got.Sum, want.Sum)
	for p := 0.0; p <= 1; p += 0.01 {
		near("quantile", got.Quantile(p), want.Quantile(p))
	}
}

// However often few different values are added, they are not rounded.
func TestCollectorJoinsEqualValues(t *testing.T) {
	var c stats.Collector
	var counts []stats.Counted
	for i := range 1<<20 + 1000 {
		v := stats.Counted{Value: math.Pi * float64(i*7919%5000), Count: 1 + i%2}
		c.AddN(v.Value, v.Count)
		counts = append(counts, v)
	}
	got, want := c.Sample(), stats.OfCounts(counts)
	for p := 0.0; p <= 1; p += 0.001 {
		if got.Quantile(p) != want.Quantile(p) {
			t.Fatalf("quantile %v is %v, want %v", p, got.Quantile(p), want.Quantile(p))
		}
	}
}

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

// share returns the share of values that are at most x.
func share(values []float64, x float64) float64 {
	n := 0
	for _, v := range values {
		if v <= x {
			n++
		}
	}
	return float64(n) / float64(len(values))
}

func TestDistancesAgainstBruteForce(t *testing.T) {
	value := rapid.Map(rapid.IntRange(-20, 20), func(n int) float64 { return float64(n) / 4 })
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(value, 1, 15).Draw(t, "a")
		b := rapid.SliceOfN(value, 1, 15).Draw(t, "b")
		ks := 0.0
		for _, x := range slices.Concat(a, b) {
			ks = max(ks, math.Abs(share(a, x)-share(b, x)))
		}
		// The distance between the quantiles, with each value repeated as often as
		// the other side has values.
		fine := func(values []float64, times int) (all []float64) {
			for _, v := range slices.Sorted(slices.Values(values)) {
				all = append(all, slices.Repeat([]float64{v}, times)...)
			}
			return all
		}
		moved := 0.0
		to := fine(b, len(a))
		for i, from := range fine(a, len(b)) {
			moved += math.Abs(from - to[i])
		}
		x, y := stats.Of(slices.Clone(a)), stats.Of(slices.Clone(b))
		if got := stats.KS(x, y); !near(got, ks) {
			t.Fatalf("KS %v, want %v", got, ks)
		}
		if got, want := stats.Wasserstein(x, y), moved/float64(len(to)); !near(got, want) {
			t.Fatalf("Wasserstein %v, want %v", got, want)
		}
	})
}

func TestSumCancels(t *testing.T) {
	var s stats.Sum
	for _, sign := range []float64{1, 1, -1, -1} {
		for i := range 1000 {
			s.Add(sign / float64(i+1))
		}
		s.Add(sign * 1e15)
	}
	if got := s.Value(); got < -1e-9 || got > 1e-9 {
		t.Errorf("%v is left after subtracting everything that was added", got)
	}
}
