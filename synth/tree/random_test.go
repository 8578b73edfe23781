package tree

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestEmpiricalDrawsEveryObservation compares with a list of all observations,
// of which the draw takes one by its number.
func TestEmpiricalDrawsEveryObservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counted := make(map[int]int)
		for range rapid.IntRange(0, 60).Draw(t, "values") {
			count := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 500)).Draw(t, "count")
			counted[rapid.IntRange(-100, 100).Draw(t, "value")] += count
		}
		e := observed(counted)
		var all []int
		for v := -100; v <= 100; v++ {
			for range counted[v] {
				all = append(all, v)
			}
		}
		if int(e.total()) != len(all) {
			t.Fatalf("%d observations, want %d", e.total(), len(all))
		}
		seed := rapid.Uint64().Draw(t, "seed")
		got, numbers := stream(seed, "test"), stream(seed, "test")
		for range 200 {
			want := 0
			if len(all) > 0 {
				want = all[numbers.Uint64N(uint64(len(all)))]
			}
			if v := e.draw(got); v != want {
				t.Fatalf("drew %d, want %d", v, want)
			}
		}
		checkMoments(t, e, all)
	})
}

func checkMoments(t *rapid.T, e empirical[int], all []int) {
	sum, atMost := 0, make(map[int]int)
	for _, v := range all {
		sum += v
		for x := v; x <= 101; x++ {
			atMost[x]++
		}
	}
	n := float64(max(1, len(all)))
	if got, want := mean(&e), float64(sum)/n; math.Abs(got-want) > 1e-9 {
		t.Fatalf("mean %v, want %v", got, want)
	}
	for x := -101; x <= 101; x++ {
		if got, want := share(&e, x), float64(atMost[x])/n; got != want {
			t.Fatalf("share up to %d is %v, want %v", x, got, want)
		}
	}
	if low, high := e.bounds(); len(all) > 0 && (low != all[0] || high != all[len(all)-1]) {
		t.Fatalf("bounds %d and %d of %v", low, high, all)
	}
}

func BenchmarkEmpiricalDraw(b *testing.B) {
	for _, skew := range []float64{0, 2} {
		counted := make(map[int]int)
		for i := range 1000 {
			counted[i] = 1 + int(1e6/math.Pow(float64(i+1), skew))
		}
		e := observed(counted)
		b.Run("values=1000/skew="+map[float64]string{0: "0", 2: "2"}[skew], func(b *testing.B) {
			random := stream(1, "bench")
			for b.Loop() {
				e.draw(random)
			}
		})
	}
}
