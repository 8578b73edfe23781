package trace_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"moontide/trace"
)

// ticks makes n times on a grid. Each tick is used with a probability, and each
// time is off by up to jitter ms, in whole ms.
func ticks(n int, step, offset, used float64, jitter int) (times []float64) {
	random := rand.New(rand.NewPCG(uint64(n), 1))
	for tick := 0.0; len(times) < n; tick++ {
		if random.Float64() < used {
			off := float64(random.IntN(2*jitter+1) - jitter)
			times = append(times, offset+tick*step+off)
		}
	}
	return times
}

// several makes k times for each of n ticks, each with independent jitter.
func several(k, n int, step float64, jitter int) (all [][]float64) {
	for i := range k {
		all = append(all, ticks(n+i, step, 0, 1, jitter)[i:]) // n+i seeds the jitter
	}
	return all
}

func TestDetectGrid(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	poisson := func(n int, mean float64, clock func(float64) float64) (times []float64) {
		at := 0.0
		for range n {
			times = append(times, clock(at))
			at += mean * random.ExpFloat64()
		}
		return times
	}
	exact := func(t float64) float64 { return t }
	stray := func(times []float64, strays int) []float64 {
		for i := range strays {
			at := 1 + i*len(times)/(strays+1)
			times[at] += (0.1 + 0.8*random.Float64()) * (times[at+1] - times[at])
		}
		return times
	}
	for _, test := range []struct {
		name  string
		times []float64
		step  float64 // 0 is none
	}{
		{"one tick in fifty", ticks(2000, 10, 3, 0.02, 0), 10},
		{"jitter over the origin", ticks(1200, 3000, 3, 0.8, 3), 3000},
		{"jitter and few ticks", ticks(3000, 3000, 0, 0.1, 20), 3000},
		{"ten times a tick, each with its jitter", slices.Concat(several(10, 200, 3000, 5)...), 3000},
		{"twenty times a tick, each with its jitter", slices.Concat(several(20, 100, 3000, 29)...), 3000},
		{"jitter as wide as the tolerance", ticks(1000, 1000, 500, 1, 10), 1000},
		{"jitter beyond it", ticks(1000, 1000, 500, 1, 15), 0},
		{"Unix time", ticks(100, 1000, 1_700_000_000_250, 0.5, 0), 1000},
		{"one stray in 100", stray(ticks(1000, 1000, 0, 1, 0), 9), 1000},
		{"two strays in 100", stray(ticks(1000, 1000, 0, 1, 0), 20), 0},
		{"even milliseconds", poisson(40, 500, func(t float64) float64 { return 2 * math.Round(t/2) }), 2},
		{"even milliseconds, too few to tell", poisson(30, 500, func(t float64) float64 { return 2 * math.Round(t/2) }), 0},
		{"ten milliseconds", poisson(500, 300, func(t float64) float64 { return 10 * math.Floor(t/10) }), 10},
		{"whole milliseconds", poisson(5000, 300, math.Round), 0},
		{"a clock of a millisecond, all ticks", ticks(500, 1, 0, 1, 0), 0},
		{"a clock finer than that", ticks(500, 0.5, 0, 1, 0), 0},
		{"no clock", poisson(5000, 300, exact), 0},
		{"no clock, few rows", poisson(10, 300, exact), 0},
		{"one tick in three hundred", ticks(300, 1000, 0, 0.003, 0), 1000},
		{"one tick in three hundred, a stray", append(ticks(300, 1000, 0, 0.003, 0), 12_345.25), 1000},
		{"one tick in three thousand", ticks(300, 1000, 0, 0.0003, 0), 1000},
		{"strays all near the start", func() []float64 {
			times := ticks(10_000, 1000, 0, 1, 0)
			for i := range 60 {
				times[15*i] += 400
			}
			return times
		}(), 1000},
		{"one tick in a hundred, jitter", ticks(300, 1000, 0, 0.01, 1), 1000},
		{"thirty a second", ticks(2000, 1000.0/30, 0, 0.8, 0), 1000.0 / 30},
		{"all at the first tick but some", append(make([]float64, 5000), ticks(40, 5000, 0, 1, 0)...), 5000},
		{"a grid at the end only", append(poisson(500, 10, exact), ticks(100, 3000, 9000, 1, 0)...), 0},
		{"seven times", ticks(7, 3000, 0, 1, 0), 0},
		{"eight times", ticks(8, 3000, 0, 1, 0), 3000},
		{"one time", slices.Repeat([]float64{5}, 100), 0},
		{"none", nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			shuffled := append(slices.Clone(test.times), test.times...)
			random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			before := slices.Clone(shuffled)
			g, ok := trace.DetectGrid(shuffled)
			if !slices.Equal(before, shuffled) {
				t.Error("the timestamps were touched")
			}
			if ok != (test.step > 0) || math.Abs(g.Step-test.step) > 0.001*test.step {
				t.Errorf("grid %+v, want a step of %v", g, test.step)
			}
		})
	}
}

func TestGridSaysWhereTicksAre(t *testing.T) {
	times := ticks(300, 1000, 1_000_250, 0.5, 2)
	times[100] += 300
	g, ok := trace.DetectGrid(times)
	steps := int(math.Round((times[299] - times[0]) / 1000))
	if !ok || g.Step != 1000 || math.Abs(g.Offset-250) > 1 || g.Jitter < 2 || g.Jitter > 4 || g.Steps != steps || g.Ticks != 299 {
		t.Errorf("%+v, want 1000 from 250, a jitter of about 2, %v steps, 299 ticks", g, steps)
	}
	if want := 299.0 / 300; math.Abs(g.Share-want) > 1e-12 {
		t.Errorf("share %v, want %v", g.Share, want)
	}
}

func TestGridCountsTicksAndNotTimes(t *testing.T) {
	times := slices.Concat(several(10, 200, 3000, 5)...)
	times = slices.DeleteFunc(times, func(t float64) bool { return t > 2500 && t < 3500 }) // the second tick
	if g, ok := trace.DetectGrid(times); !ok || g.Ticks != 208 || g.Steps != 208 {
		t.Errorf("%+v, want 208 of 209 ticks", g)
	}
}

// The grid of any clock is found, with its step instead of a divisor.
func TestDetectGridFindsAnyGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := rapid.SampledFrom([]float64{20, 50, 100, 250, 500, 1000, 2000, 3000, 5000, 15_000, 60_000, 600_000}).Draw(t, "step")
		jitter := rapid.IntRange(0, int(step/200)).Draw(t, "jitter")
		used := rapid.Float64Range(0.2, 1).Draw(t, "used")
		offset := rapid.Float64Range(0, 1e6).Draw(t, "offset")
		n := rapid.IntRange(50, 500).Draw(t, "times")
		g, ok := trace.DetectGrid(ticks(n, step, offset, used, jitter))
		if !ok || math.Abs(g.Step-step) > 0.001*step {
			t.Fatalf("%d times at %v of the ticks of %v ms with a jitter of %d: %+v", n, used, step, jitter, g)
		}
	})
}
