package stats

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestDiscreteDrawsByCount compares draws with indexing a list of all values.
func TestDiscreteDrawsByCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counted := make(map[int]int)
		for range rapid.IntRange(0, 60).Draw(t, "values") {
			count := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 500)).Draw(t, "count")
			counted[rapid.IntRange(-100, 100).Draw(t, "value")] += count
		}
		d := NewDiscrete(counted)
		var all []int
		for v := -100; v <= 100; v++ {
			for range counted[v] {
				all = append(all, v)
			}
		}
		if int(d.total()) != len(all) {
			t.Fatalf("%d values, want %d", d.total(), len(all))
		}
		seed := rapid.Uint64().Draw(t, "seed")
		got, numbers := NewStream(seed, "test"), NewStream(seed, "test")
		for range 200 {
			want := 0
			if len(all) > 0 {
				want = all[numbers.Uint64N(uint64(len(all)))]
			}
			if v := d.Draw(got); v != want {
				t.Fatalf("drew %d, want %d", v, want)
			}
		}
		checkDiscrete(t, d, all)
	})
}

func checkDiscrete(t *rapid.T, d Discrete[int], all []int) {
	sum := 0
	for _, v := range all {
		sum += v
	}
	n := float64(max(1, len(all)))
	if got, want := d.Mean(), float64(sum)/n; math.Abs(got-want) > 1e-9 {
		t.Fatalf("mean is %v, want %v", got, want)
	}
	if low, high := d.Bounds(); len(all) > 0 && (low != all[0] || high != all[len(all)-1]) {
		t.Fatalf("bounds are %d and %d, want %d and %d", low, high, all[0], all[len(all)-1])
	}
}
