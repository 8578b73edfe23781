package stats_test

import (
	"slices"
	"testing"
	"time"

	"moontide/trace/stats"
)

func TestDurations(t *testing.T) {
	d := stats.NewDurations()
	if d.Quantile(0.5) != 0 || d.Count() != 0 || d.Cumulative([]time.Duration{time.Hour})[0] != 0 {
		t.Error("an empty histogram has durations")
	}
	for i := range 1000 {
		d.Add(time.Duration(i+1)*time.Millisecond, 2)
	}
	for p, want := range map[float64]time.Duration{0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond, 1: time.Second} {
		if got := d.Quantile(p); got < want || got > want+want/1000 {
			t.Errorf("quantile %v is %v, want %v", p, got, want)
		}
	}
	if d.Count() != 2000 || d.Sum() != 1001*time.Second {
		t.Errorf("%d durations with a sum of %v", d.Count(), d.Sum())
	}
	d.Add(-time.Second, 1)
	d.Add(1<<62, 1)
	bounds := []time.Duration{0, 10 * time.Millisecond, 10500 * time.Microsecond, time.Minute, 24 * time.Hour}
	if got, want := d.Cumulative(bounds), []int{1, 21, 21, 2001, 2002}; !slices.Equal(got, want) {
		t.Errorf("up to %v are %d, want %d", bounds, got, want)
	}
	if d.Reset(); d.Count() != 0 || d.Sum() != 0 {
		t.Error("durations are left")
	}
}
