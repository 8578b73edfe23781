package figure

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

const testColumns = 40

func thinned(line []point, width float64) [][]point {
	t := newThinner(0, testColumns*width, width)
	for _, p := range line {
		t.add(p)
	}
	return t.result()
}

func randomLine(t *rapid.T) []point {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	line := make([]point, rapid.IntRange(1, 2000).Draw(t, "points"))
	steps := float64(rapid.SampledFrom([]int{3, 100, 1e9}).Draw(t, "heights")) // few heights make ties
	for i := range line {
		line[i] = point{(testColumns+10)*r.Float64() - 5, math.Floor(r.Float64()*steps) / steps}
	}
	return line
}

func byX(a, b point) int {
	switch {
	case a.x < b.x:
		return -1
	case a.x > b.x:
		return 1
	}
	return 0
}

func TestThinKeepsExtremesOfEveryColumn(t *testing.T) {
	type ends struct{ low, high float64 }
	of := func(line []point) map[float64]ends {
		columns := map[float64]ends{}
		for _, p := range line {
			c := min(max(math.Floor(p.x), -1), testColumns)
			e, seen := columns[c]
			if !seen {
				e = ends{p.y, p.y}
			}
			columns[c] = ends{min(e.low, p.y), max(e.high, p.y)}
		}
		return columns
	}
	rapid.Check(t, func(t *rapid.T) {
		line := randomLine(t)
		slices.SortStableFunc(line, byX)
		parts := thinned(line, 1)
		if len(parts) != 1 {
			t.Fatalf("one line became %d", len(parts))
		}
		thin := parts[0]
		if len(thin) > 4*(testColumns+2) {
			t.Fatalf("%d points for %d columns", len(thin), testColumns)
		}
		if thin[0] != line[0] || thin[len(thin)-1] != line[len(line)-1] {
			t.Fatal("the ends moved")
		}
		got, want := of(thin), of(line)
		for c, e := range want {
			if got[c] != e {
				t.Fatalf("column %g: %v, want %v", c, got[c], e)
			}
		}
	})
}

func TestThinKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := randomLine(t)
		rest := line
		for _, p := range thinned(line, 1)[0] {
			i := slices.Index(rest, p)
			if i < 0 {
				t.Fatalf("%v is not a point of the line, or not in its order", p)
			}
			rest = rest[i+1:]
		}
	})
}

// A line may alternate between two columns any number of times.
func TestThinBoundsAnyLine(t *testing.T) {
	var line []point
	for i := range 1_000_000 {
		line = append(line, point{float64(i%2) * 30, math.Sin(float64(i) / 1000)})
	}
	line[345_678].y, line[765_432].y = -7, 7
	parts := thinned(line, 1)
	if len(parts) != 1 || len(parts[0]) > 2*maxPoints {
		t.Fatalf("%d lines, the first of %d points", len(parts), len(parts[0]))
	}
	for _, y := range []float64{-7, 7} {
		if !slices.ContainsFunc(parts[0], func(p point) bool { return p.y == y }) {
			t.Errorf("lost the extreme %g", y)
		}
	}
}

func TestThinGaps(t *testing.T) {
	thin := newThinner(0, 10, 1)
	thin.gap()
	thin.add(point{1.1, 1})
	thin.gap() // too narrow to see
	thin.add(point{1.2, 2})
	thin.gap()
	thin.gap()
	thin.add(point{5, 3})
	got := thin.result()
	want := [][]point{{{1.1, 1}, {1.2, 2}}, {{5, 3}}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
	if empty := newThinner(0, 10, 1).result(); len(empty) != 0 {
		t.Errorf("nothing became %v", empty)
	}
}

func TestThinBoundsGaps(t *testing.T) {
	thin := newThinner(0, 100, 1)
	for i := range 300_000 {
		thin.add(point{float64(i % 100), float64(i)})
		thin.gap()
	}
	points := 0
	for _, line := range thin.result() {
		points += len(line)
	}
	if points > 2*maxPoints {
		t.Errorf("%d points", points)
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
	kept := thinDots(dots, 2)
	if len(kept) > maxDots || len(kept) < maxDots/3 {
		t.Errorf("kept %d dots", len(kept))
	}
	for _, p := range far {
		if !slices.Contains(kept, p) {
			t.Errorf("lost %v", p)
		}
	}
	if few := thinDots(dots[:100], 2); len(few) != 100 {
		t.Errorf("thinned 100 dots to %d", len(few))
	}
}
