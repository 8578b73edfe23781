package stats

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDurations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		precision := rapid.SampledFrom([]int{3, 10}).Draw(t, "precision")
		d, sum := NewDurations(precision), time.Duration(0)
		early := rapid.SliceOf(rapid.Int64Range(0, int64(time.Minute))).Draw(t, "before")
		for _, value := range early {
			d.Add(time.Duration(value), 1)
		}
		before := d.Since(nil)
		values := rapid.SliceOfN(rapid.Int64Range(0, int64(time.Hour)), 1, 100).Draw(t, "values")
		for _, value := range values {
			d.Add(time.Duration(value), 2)
			sum += 2 * time.Duration(value)
		}
		added := d.Since(before)
		if added.Count() != uint64(2*len(values)) || before.Count() != uint64(len(early)) || added.Sum() != sum {
			t.Fatalf("%d durations of %d, with a sum of %v, want %v", added.Count(), len(values), added.Sum(), sum)
		}
		slices.Sort(values)
		for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
			rank := int(q * float64(len(values)))
			if float64(rank) < q*float64(len(values)) {
				rank++
			}
			truth := time.Duration(values[max(rank, 1)-1])
			got := added.Quantile(q)
			if got < truth || got > truth+truth>>precision {
				t.Fatalf("quantile %v is %v, want %v", q, got, truth)
			}
			if n := added.Cumulative([]time.Duration{truth, got})[1]; n < uint64(2*rank) {
				t.Fatalf("%d durations up to %v, want %d", n, got, 2*rank)
			}
		}
	})
}

// Histograms without durations have a quantile of 0. Durations out of range are kept.
func TestDurationsAtTheEnds(t *testing.T) {
	bounds := []time.Duration{0, time.Hour, 40 * time.Hour}
	for _, d := range []*Durations{{}, NewDurations(3), new(Durations).Since(new(Durations))} {
		if got := d.Cumulative(bounds); d.Quantile(0.5) != 0 || got[2] != 0 {
			t.Errorf("quantile of nothing is %v, %d", d.Quantile(0.5), got)
		}
	}
	d := NewDurations(10)
	d.Add(-time.Second, 1)
	d.Add(1<<62, 1)
	if got := d.Cumulative(bounds); d.Quantile(0.5) != 0 || d.Quantile(1) < 39*time.Hour || !slices.Equal(got, []uint64{1, 1, 2}) {
		t.Errorf("quantiles %v and %v, %d", d.Quantile(0.5), d.Quantile(1), got)
	}
}

// There are no gaps between buckets.
func TestDurationBuckets(t *testing.T) {
	for _, precision := range []int{3, 10} {
		d := NewDurations(precision)
		for i := range len(d.counts) - 1 {
			if top := d.top(i); d.bucket(top) != i || d.bucket(top+1) != i+1 {
				t.Errorf("bucket %d ends at %d, which is in %d, and %d in %d", i, top, d.bucket(top), top+1, d.bucket(top+1))
			}
		}
		if last := d.top(len(d.counts) - 1); last != 1<<maxBits-1 {
			t.Errorf("the last bucket ends at %v", last)
		}
	}
}
