package stats

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Sorted values equal those of the standard library, and counts stay with their
// values.
func TestSort(t *testing.T) {
	whole := rapid.OneOf(
		rapid.Map(rapid.Uint32(), func(n uint32) float64 { return float64(n) }),
		rapid.Map(rapid.Uint32Range(0, 3000), func(n uint32) float64 { return float64(n) }),
	)
	any := rapid.OneOf(whole, rapid.Float64(),
		rapid.SampledFrom([]float64{-1, 0.5, 0, math.Copysign(0, -1), 1 << 32, math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64}))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 2, minRadix - 1, minRadix, 700}).Draw(t, "n")
		values := rapid.SliceOfN(rapid.SampledFrom([]*rapid.Generator[float64]{whole, any}).Draw(t, "kind"), n, n).Draw(t, "values")
		odd := rapid.SampledFrom([]int{0, -1, math.MaxUint32, 1 << 40}).Draw(t, "odd count")
		counted := make([]Counted, n)
		for i, v := range values {
			// Counts identify their values, except for one odd count.
			counted[i] = Counted{v, int(math.Float64bits(v) >> 33)}
			if i == n/2 {
				counted[i].Count = odd
			}
		}
		want := slices.Clone(values)
		slices.Sort(want)
		sortValues(values)
		sortCounted(counted)
		odds := 0
		for i, v := range want {
			if values[i] != v || counted[i].Value != v {
				t.Fatalf("at %d: %v and %v, want %v", i, values[i], counted[i], v)
			}
			if c := counted[i]; c.Value != 0 && c.Count != int(math.Float64bits(c.Value)>>33) { // -0 becomes 0
				odds++
			}
		}
		if odds > 1 {
			t.Fatalf("%d counts are not with their values", odds)
		}
	})
}
