package analyze_test

import (
	"math"
	"math/rand/v2"
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

func TestPeaks(t *testing.T) {
	tests := []struct {
		name   string
		times  []float64
		second int
		minute int
	}{
		{"one", []float64{5}, 1, 1},
		{"a window does not include its end", []float64{0, 1000, 2000}, 1, 3},
		{"a window may begin anywhere", []float64{0, 900, 1100, 1899.5, 59_999, 60_000}, 3, 5},
		{"all at once", []float64{7, 7, 7}, 3, 3},
		{"out of order", []float64{2500, 0, 2000}, 2, 3},
	}
	for _, test := range tests {
		a := analyzed(t, analyze.Options{}, arriving(test.times...)...).Arrivals
		if a.Peak1s != test.second || a.Peak60s != test.minute {
			t.Errorf("%s: peaks %d and %d, want %d and %d", test.name, a.Peak1s, a.Peak60s, test.second, test.minute)
		}
	}
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
		a, most := r.Arrivals, 0
		for _, begin := range times { // a fullest window begins with an arrival
			n := 0
			for _, t := range times {
				if t >= begin && t-begin < 1000 {
					n++
				}
			}
			most = max(most, n)
		}
		if a.Peak1s != most {
			rt.Fatalf("peak %d, want %d", a.Peak1s, most)
		}
	})
}

func TestDispersionOfPoisson(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var times []float64
	for now := 0.0; now < 1e7; now += random.ExpFloat64() * 200 {
		times = append(times, now)
	}
	a := analyzed(t, analyze.Options{}, arriving(times...)...).Arrivals
	if math.Abs(a.Dispersion1s.Value-1) > 0.05 || math.Abs(a.Dispersion60s.Value-1) > 0.3 || math.Abs(a.CV.Value-1) > 0.02 {
		t.Errorf("dispersion %v and %v, CV %v, want about 1", a.Dispersion1s, a.Dispersion60s, a.CV)
	}
	if a.Grid != nil {
		t.Errorf("a Poisson process is on a grid: %+v", a.Grid)
	}
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
