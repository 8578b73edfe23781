package analyze_test

import (
	"math"
	"math/rand/v2"
	"slices"
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

func TestSeries(t *testing.T) {
	tests := []struct {
		name        string
		times       []float64
		step, start float64
		counts      []int
	}{
		{"one", []float64{5}, 1, 5, []int{1}},
		{"all in the smallest steps", []float64{3, 3, 5.5}, 1, 3, []int{2, 0, 1}},
		{"starts at a multiple", []float64{1001, 1990}, 2, 1000, append(append([]int{1}, make([]int, 494)...), 1)},
		// A window of 5 ms would do for the duration, but not for the grid. Each
		// tick is in the middle of one, and so the early 599 is in its own.
		{"on a grid", []float64{0, 300, 599, 900, 1200, 1500, 1800, 2100, 2100}, 300, -150, []int{1, 1, 1, 1, 1, 1, 1, 2}},
	}
	for _, test := range tests {
		s := analyzed(t, analyze.Options{}, arriving(test.times...)...).Arrivals.Series
		if s.Step != test.step || s.Start != test.start || !slices.Equal(s.Counts, test.counts) {
			t.Errorf("%s: %+v, want step %v from %v: %v", test.name, s, test.step, test.start, test.counts)
		}
	}
}

func TestWindowsAgainstBruteForce(t *testing.T) {
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
		if len(a.Series.Counts) > 500 {
			rt.Fatalf("%d windows", len(a.Series.Counts))
		}
		counts := make([]int, len(a.Series.Counts))
		for _, t := range times {
			counts[int((t-a.Series.Start)/a.Series.Step)]++
		}
		if !slices.Equal(counts, a.Series.Counts) || counts[0] == 0 {
			rt.Fatalf("series %+v, want %v", a.Series, counts)
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
	random := rand.New(rand.NewPCG(1, 2))
	// ticks are n arrivals on ticks of a step, each taken with a probability, and
	// moved by up to a jitter.
	ticks := func(n int, step, taken, jitter float64) (times []float64) {
		for i := 0; len(times) < n; i++ {
			if random.Float64() < taken {
				times = append(times, math.Max(0, float64(i)*step+math.Round((2*random.Float64()-1)*jitter)))
			}
		}
		return times
	}
	moved := func(by float64, times []float64) []float64 {
		for i := range times {
			times[i] += by
		}
		return times
	}
	whole := func(times []float64) []float64 {
		for i, ms := range times {
			times[i] = math.Round(ms)
		}
		return times
	}
	poisson := func(n int, mean float64) (times []float64) {
		now := 0.0
		for range n {
			now += random.ExpFloat64() * mean
			times = append(times, now)
		}
		return times
	}
	tests := []struct {
		name  string
		times []float64
		step  float64 // 0 for none
	}{
		{"too few", ticks(7, 3000, 1, 0), 0},
		{"few", ticks(8, 3000, 1, 0), 3000},
		{"one millisecond early or late", ticks(1180, 3000, 1, 1), 3000},
		{"moved", moved(777, ticks(500, 3000, 0.9, 0)), 3000},
		{"whole seconds, sparse", ticks(300, 1000, 0.02, 0), 1000},
		{"whole seconds, sparse, one off", append(ticks(300, 1000, 0.003, 0), 12_345.25), 1000},
		{"sped up", func() []float64 {
			times := ticks(1000, 3000, 1, 1)
			for i := range times {
				times[i] /= 1.7
			}
			return times
		}(), 3000 / 1.7},
		{"thirty a second", ticks(2000, 1000.0/30, 0.8, 0), 1000.0 / 30},
		{"whole milliseconds", whole(poisson(500, 200)), 1},
		{"no grid", poisson(500, 200), 0},
		{"one in two hundred off", append(ticks(400, 3000, 1, 0), 1e4+1, 2e5+500), 3000},
		{"one in twenty off", append(ticks(400, 3000, 1, 0), whole(poisson(21, 5e4))...), 1},
		{"all at once but few", append(slices.Repeat([]float64{0}, 5000), whole(poisson(40, 5000))...), 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := analyzed(t, analyze.Options{}, arriving(test.times...)...).Arrivals.Grid
			switch {
			case test.step == 0:
				if g != nil {
					t.Errorf("grid %+v, want none", g)
				}
			case g == nil:
				t.Errorf("no grid, want %v", test.step)
			case math.Abs(g.Step-test.step) > 1e-5*test.step || g.OnGrid < 0.99 || g.OnGrid > 1:
				t.Errorf("grid %+v, want %v", g, test.step)
			}
		})
	}
}

func TestShareOnGrid(t *testing.T) {
	times := []float64{500} // 200 ticks and one time between them
	for i := range 200 {
		times = append(times, float64(i)*1000)
	}
	g := analyzed(t, analyze.Options{}, arriving(times...)...).Arrivals.Grid
	if g == nil || g.Step != 1000 || !near(g.OnGrid, 200.0/201) {
		t.Errorf("grid %+v, want 1000 with 200 of 201 times", g)
	}
}
