package block

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSparseAgainstMap(t *testing.T) {
	number := rapid.OneOf(rapid.Uint32Range(0, 200), rapid.SampledFrom([]uint32{63, 64, 4095, 4096, 4097, 1 << 20}))
	rapid.Check(t, func(t *rapid.T) {
		var s Sparse
		want := map[uint32]uint32{}
		for range rapid.IntRange(0, 60).Draw(t, "sets") {
			n, value := number.Draw(t, "number"), rapid.Uint32Range(0, 3).Draw(t, "value")
			s.Set(n, value)
			want[n] = value
			for _, n := range []uint32{n, n + 1, number.Draw(t, "other")} {
				if got := s.At(n); got != want[n] {
					t.Fatalf("%d has %d, want %d", n, got, want[n])
				}
			}
		}
	})
}
