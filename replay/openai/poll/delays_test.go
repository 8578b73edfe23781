package poll

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDelays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var c Counter
		early := rapid.SliceOf(rapid.Int64Range(0, int64(time.Minute))).Draw(t, "before")
		for _, d := range early {
			c.Add(time.Duration(d), 1)
		}
		before := c.Snapshot()
		delays := rapid.SliceOfN(rapid.Int64Range(0, int64(time.Hour)), 1, 100).Draw(t, "delays")
		for _, d := range delays {
			c.Add(time.Duration(d), 1)
		}
		added := c.Snapshot().Since(before)
		if added.Count() != uint64(len(delays)) || before.Count() != uint64(len(early)) {
			t.Fatalf("%d delays of %d", added.Count(), len(delays))
		}
		slices.Sort(delays)
		for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
			rank := int(q * float64(len(delays)))
			if float64(rank) < q*float64(len(delays)) {
				rank++
			}
			truth := time.Duration(delays[max(rank, 1)-1])
			if got := added.Quantile(q); got < truth || got > truth+truth/8 {
				t.Fatalf("quantile %v is %v, want %v", q, got, truth)
			}
		}
	})
	if got := (Delays{}).Quantile(0.5); got != 0 {
		t.Errorf("quantile of nothing is %v", got)
	}
	var c Counter
	c.Add(1<<62, 1)
	if got := c.Snapshot().Quantile(1); got < time.Hour {
		t.Errorf("quantile of a century is %v", got)
	}
}

// There are no gaps between buckets.
func TestDelayBuckets(t *testing.T) {
	t.Parallel()
	for i := range delayBuckets - 1 {
		if top := delayTop(i); delayBucket(top) != i || delayBucket(top+1) != i+1 {
			t.Errorf("bucket %d ends at %d, which is in %d, and %d in %d", i, top, delayBucket(top), top+1, delayBucket(top+1))
		}
	}
}
