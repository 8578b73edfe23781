package cache

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestGap(t *testing.T) {
	a := curveOf([]uint32{0, 1}, []uint32{0, 2}, []uint32{0, 1})
	if g := GapOf(a, a); g != (Gap{}) {
		t.Errorf("got %+v", g)
	}
	// 0 hits from 1 block on; the second trace hits nothing: 1 of 2 blocks apart.
	hit, miss := curveOf([]uint32{0}, []uint32{0}), curveOf([]uint32{0}, []uint32{1})
	if g := GapOf(hit, miss); g != (Gap{Largest: 0.5, At: 1, Mean: 0.5}) {
		t.Errorf("got %+v", g)
	}
}

func TestGapAgainstEveryCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) *Curve {
			return curveOf(rapid.SliceOfN(rapid.SliceOfN(rapid.Uint32Range(0, 12), 0, 6), 1, 12).Draw(t, name)...)
		}
		a, b := draw("a"), draw("b")
		g, largest := GapOf(a, b), 0.0
		for capacity := 0; capacity <= 20; capacity++ {
			largest = max(largest, math.Abs(a.At(capacity).Rates().Block-b.At(capacity).Rates().Block))
		}
		mean := meanOverLog(a, b)
		if math.Abs(g.Largest-largest) > 1e-12 || math.Abs(g.Mean-mean) > 1e-3 {
			t.Fatalf("got %+v, want a largest gap of %v and a mean of %v", g, largest, mean)
		}
		if back := GapOf(b, a); back != g {
			t.Fatalf("%+v in one order, %+v in the other", g, back)
		}
	})
}

// meanOverLog takes the mean at very many capacities, evenly on a logarithmic
// axis; between whole blocks a rate goes in a straight line.
func meanOverLog(a, b *Curve) float64 {
	const points = 5_000
	rate := func(c *Curve, x float64) float64 {
		low := math.Floor(x)
		r0, r1 := c.At(int(low)).Rates().Block, c.At(int(low)+1).Rates().Block
		return r0 + (x-low)*(r1-r0)
	}
	largest := float64(max(a.Largest(), b.Largest(), 1))
	sum := 0.0
	for i := range points {
		x := math.Exp(math.Log(largest) * (float64(i) + 0.5) / points)
		sum += math.Abs(rate(a, x) - rate(b, x))
	}
	return sum / points
}

func curveOf(requests ...[]uint32) *Curve {
	var b CurveBuilder
	for _, numbers := range requests {
		b.Add(numbers, len(numbers)*4)
	}
	return b.Curve(4)
}
