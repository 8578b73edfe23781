package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"moontide/trace/stats"
)

// equalSamples fails if two samples of the same values differ.
func equalSamples(t interface{ Errorf(string, ...any) }, got, want stats.Sample) {
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }
	if got.Count != want.Count || got.Min != want.Min || got.Max != want.Max || !near(got.Sum, want.Sum) || !near(got.Mean, want.Mean) || !near(got.Std, want.Std) {
		t.Errorf("%d values, %v to %v, mean %v, std %v; want %d, %v to %v, %v, %v",
			got.Count, got.Min, got.Max, got.Mean, got.Std, want.Count, want.Min, want.Max, want.Mean, want.Std)
	}
	for _, p := range []float64{0, 0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1} {
		if got, want := got.Quantile(p), want.Quantile(p); got != want {
			t.Errorf("quantile %v is %v, want %v", p, got, want)
		}
	}
	if want.Count == 0 {
		return
	}
	bins := stats.BinsFor(20, want)
	counts, wanted := got.Histogram(bins), want.Histogram(bins)
	for i := range wanted {
		if counts[i] != wanted[i] {
			t.Errorf("bin %d has %d, want %d", i, counts[i], wanted[i])
		}
	}
	if d := stats.KS(got, want); d != 0 {
		t.Errorf("KS distance %v", d)
	}
}

func TestSampleBuilder(t *testing.T) {
	numbers := rapid.OneOf(rapid.Int64Range(-3, 3), rapid.Int64Range(-1e6, 1e6), rapid.Int64Range(-1<<52, 1<<52))
	rapid.Check(t, func(rt *rapid.T) {
		var b stats.SampleBuilder
		var values []float64
		for _, n := range rapid.SliceOf(numbers).Draw(rt, "numbers") {
			b.Add(n)
			values = append(values, float64(n)/1e3)
		}
		equalSamples(rt, b.Sample(1e3), stats.Of(values))
	})
}

// Pages with few, many and very many integers are stored in three ways.
func TestSampleBuilderOfMany(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	for _, spread := range []float64{1, 1e3, 1e5, 1e7, 1e10} {
		var b stats.SampleBuilder
		var values []float64
		for range 150_000 {
			n := int64(random.ExpFloat64() * spread)
			b.Add(n)
			values = append(values, float64(n)/1e6)
		}
		equalSamples(t, b.Sample(1e6), stats.Of(values))
	}
}

func BenchmarkSampleBuilder(b *testing.B) {
	random := rand.New(rand.NewPCG(3, 5))
	numbers := make([]int64, 1<<22)
	for i := range numbers {
		numbers[i] = 1e7 + int64(random.ExpFloat64()*5e6)
	}
	for b.Loop() {
		var builder stats.SampleBuilder
		for _, n := range numbers {
			builder.Add(n)
		}
		builder.Sample(1e6)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(numbers)), "ns/integer")
}
