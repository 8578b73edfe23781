package figure

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func randomLine(t *rapid.T, fewest, most int) []point {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	line := make([]point, rapid.IntRange(fewest, most).Draw(t, "points"))
	steps := float64(rapid.SampledFrom([]int{3, 100, 1e9}).Draw(t, "heights")) // few heights make ties
	for i := range line {
		line[i] = point{50 * r.Float64(), math.Floor(r.Float64()*steps) / steps}
	}
	return line
}

// The extremes of every short section are drawn.
func TestThinKeepsExtremesAndOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := randomLine(t, maxPoints+1, 5*maxPoints)
		thin := thinned(line, len(line))
		if len(thin) > maxPoints+6 {
			t.Fatalf("%d points", len(thin))
		}
		if thin[0] != line[0] || thin[len(thin)-1] != line[len(line)-1] {
			t.Fatal("the ends moved")
		}
		rest := line
		for _, p := range thin {
			i := slices.Index(rest, p)
			if i < 0 {
				t.Fatalf("%v is not a point of the line, or not in its order", p)
			}
			rest = rest[i+1:]
		}
		for part := range slices.Chunk(line, (6*len(line)+maxPoints-1)/maxPoints) {
			byY := func(a, b point) int { return cmp.Compare(a.y, b.y) }
			low, high := slices.MinFunc(part, byY).y, slices.MaxFunc(part, byY).y
			if !slices.ContainsFunc(thin, func(p point) bool { return p.y == low }) || !slices.ContainsFunc(thin, func(p point) bool { return p.y == high }) {
				t.Fatalf("lost the extremes %g and %g", low, high)
			}
		}
	})
}

func TestGaps(t *testing.T) {
	nan := math.NaN()
	s := Series{X: []float64{nan, 1, 2, nan, nan, 5}, Y: []float64{1, 1, 2, 3, 3, 3}}
	f := Figure{Series: []Series{s}}
	lines := newPage(alone(f), 720).panels[0].outline(&s)
	if len(lines) != 2 || len(lines[0]) != 2 || len(lines[1]) != 1 {
		t.Errorf("lines %v", lines)
	}
	s.X, s.Y = nil, nil
	for i := range 5 * maxGaps {
		s.X, s.Y = append(s.X, float64(i), nan), append(s.Y, 0, 0)
	}
	if lines := newPage(alone(f), 720).panels[0].outline(&s); len(lines) != maxGaps+1 {
		t.Errorf("%d gaps made %d lines", 5*maxGaps, len(lines))
	}
}

func TestThinDots(t *testing.T) {
	r := random()
	dots := make([]point, 200_000)
	for i := range dots {
		dots[i] = point{600 * r.Float64(), 300 * r.Float64()}
	}
	far := []point{{-1, 5}, {601, 5}, {5, -1}, {5, 301}}
	dots = append(dots, far...)
	kept := thinDots(dots)
	if len(kept) > maxDots || len(kept) < maxDots/3 {
		t.Errorf("kept %d dots", len(kept))
	}
	for _, p := range far {
		if !slices.Contains(kept, p) {
			t.Errorf("lost %v", p)
		}
	}
	if few := thinDots(dots[:100]); len(few) != 100 {
		t.Errorf("thinned 100 dots to %d", len(few))
	}
}
