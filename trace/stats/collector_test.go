package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"moontide/trace/stats"
)

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
