package stats

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The order equals the order of the standard library.
func TestSort(t *testing.T) {
	value := rapid.OneOf(
		rapid.Map(rapid.Uint32Range(0, 3000), func(n uint32) float64 { return float64(n) }), rapid.Float64(),
		rapid.SampledFrom([]float64{-1, 0.5, 0, math.Copysign(0, -1), 1 << 32, math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64}))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 2, minRadix - 1, minRadix, 700}).Draw(t, "n")
		values := rapid.SliceOfN(value, n, n).Draw(t, "values")
		want := slices.Clone(values)
		slices.Sort(want)
		if sortValues(values); !slices.Equal(values, want) {
			t.Fatalf("%v, want %v", values, want)
		}
	})
}
