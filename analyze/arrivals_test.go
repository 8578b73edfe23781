package analyze_test

import (
	"testing"

	"pgregory.net/rapid"

	"moontide/analyze"
	"moontide/trace"
)

// arriving makes rows that arrive at times in ms.
func arriving(times ...float64) (rows []trace.Request) {
	for _, ms := range times {
		rows = append(rows, at(ms))
	}
	return rows
}

func TestDispersion(t *testing.T) {
	none := trace.Opt[float64]{}
	tests := []struct {
		name           string
		times          []float64
		second, minute trace.Opt[float64]
	}{
		{"too short", []float64{0, 1999}, none, none},
		{"a clock", []float64{0, 1000, 2000, 3000}, trace.Some(0.0), none},
		// 3 0 1 0 in the four whole seconds from 500 on: mean 1, variance 6/4.
		{"bursts, some windows empty, the rest left out", []float64{500, 600, 1499, 2500, 4600, 4700}, trace.Some(1.5), none},
		// 2 and 1 in two minutes; 2 0...0 1 0...0 in 120 seconds: mean 1/40.
		{"minutes", []float64{0, 10, 60_000, 120_000}, trace.Some((5.0/120 - 1.0/1600) * 40), trace.Some(0.25 / 1.5)},
	}
	for _, test := range tests {
		a := analyzed(t, analyze.Options{}, arriving(test.times...)...).Arrivals
		if !sameOpt(a.Dispersion1s, test.second) || !sameOpt(a.Dispersion60s, test.minute) {
			t.Errorf("%s: dispersion %v and %v, want %v and %v", test.name, a.Dispersion1s, a.Dispersion60s, test.second, test.minute)
		}
	}
}

func TestPeakAgainstBruteForce(t *testing.T) {
	time := rapid.OneOf(rapid.Map(rapid.IntRange(0, 9), func(n int) float64 { return float64(n) * 500 }), rapid.Float64Range(0, 1e4), rapid.Float64Range(0, 1e12))
	rapid.Check(t, func(rt *rapid.T) {
		times := rapid.SliceOfN(time, 1, 30).Draw(rt, "times")
		r, err := analyze.Trace(trace.FromSlice(arriving(times...)), analyze.Options{})
		if err != nil {
			rt.Fatal(err)
		}
		for window, got := range map[float64]int{1e3: r.Arrivals.Peak1s, 60e3: r.Arrivals.Peak60s} {
			most := 0
			for _, begin := range times { // a fullest window begins with an arrival
				n := 0
				for _, t := range times {
					if t >= begin && t-begin < window {
						n++
					}
				}
				most = max(most, n)
			}
			if got != most {
				rt.Fatalf("peak %d in %v ms, want %d", got, window, most)
			}
		}
	})
}

func TestGrid(t *testing.T) {
	var grid, whole, shuffled []float64
	for i := range 200 {
		grid = append(grid, float64(i*3000+i%2))
		whole = append(whole, float64(i*i*7919%10_007))
		shuffled = append(shuffled, float64(i*77%200*3000))
	}
	for _, test := range []struct {
		name  string
		times []float64
		step  float64 // 0 for none
	}{
		{"a grid", grid, 3000},
		{"out of order", append(shuffled, shuffled...), 3000},
		{"whole milliseconds are no grid", whole, 0},
		{"too few", grid[:7], 0},
	} {
		g := analyzed(t, analyze.Options{}, arriving(test.times...)...).Arrivals.Grid
		switch {
		case (g != nil) != (test.step > 0):
			t.Errorf("%s: grid %+v, want %v", test.name, g, test.step)
		case g != nil && (g.Step != test.step || g.Ticks != 200):
			t.Errorf("%s: grid %+v, want 200 ticks, %v apart", test.name, g, test.step)
		}
	}
}
