package analyze_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"moontide/analyze"
	"moontide/trace"
)

// The thirds of a trace whose rate doubles after a half and whose prompts grow.
func TestThirds(t *testing.T) {
	var rows []trace.Request
	for at := 0.0; at < 3600e3; at += 1000 {
		rows = append(rows, trace.Request{Timestamp: trace.Some(at + float64(len(rows)%7)), InputLength: 1000 + int(at/3600), OutputLength: 100})
		if at < 1800e3 {
			at += 1000
		}
	}
	over := analyzed(t, analyze.Options{}, rows...).Time
	near := func(got trace.Opt[float64], want float64) bool {
		return got.Set && math.Abs(got.Value-want) < .02*want
	}
	first, last := over.First, over.Last
	if !near(first.Rate(), .5) || !near(last.Rate(), 1) || !near(first.MeanISL(), 1167) || !near(last.MeanISL(), 1833) || first.MeanOSL() != last.MeanOSL() {
		t.Errorf("first %+v, last %+v", first, last)
	}
	if few := analyzed(t, analyze.Options{}, arriving(0, 1, 2, 3, 4, 5, 6, 7)...).Time; len(few.Windows) > 2 || few.First.Requests+few.Last.Requests > 0 {
		t.Errorf("thirds of %d windows: %+v", len(few.Windows), few)
	}
}

// Windows cover the trace without gaps, and their sums are those of the trace, as are
// those of merged windows.
func TestWindowsCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, rows := drawnTrace(t)
		over := a.Time
		if over == nil {
			if a.Arrivals.Rate.Set && len(rows) >= 8 {
				t.Fatal("no windows")
			}
			return
		}
		most := rapid.IntRange(1, 30).Draw(t, "most")
		merged, width := over.Merged(most)
		if len(over.Windows) > 72 || len(merged) > most || width < over.Step {
			t.Fatalf("%d windows, %d merged into at most %d of %v ms", len(over.Windows), len(merged), most, width)
		}
		for _, windows := range [][]analyze.Window{over.Windows, merged} {
			checkWindows(t, windows, a, len(rows))
		}
	})
}

func checkWindows(t *rapid.T, windows []analyze.Window, a *analyze.Analysis, rows int) {
	requests, isl, hit, at := 0, 0.0, 0, a.Arrivals.First
	for _, w := range windows {
		if w.From != at || w.To < w.From {
			t.Fatalf("a window from %v to %v after %v", w.From, w.To, at)
		}
		at = w.To
		requests += w.Requests
		isl += w.MeanISL().Value * float64(w.Requests)
		hit += w.Hit
		if w.Hit > w.Prompt || w.Context > w.Prompt {
			t.Fatalf("more shared than there is: %+v", w)
		}
	}
	if at != a.Arrivals.Last || requests != rows || math.Abs(isl-a.ISL.Sum) > 1e-6*a.ISL.Sum {
		t.Fatalf("until %v, %d requests, %v tokens; the trace has %v, %d, %v", at, requests, isl, a.Arrivals.Last, rows, a.ISL.Sum)
	}
	if p := a.Prefix; p != nil && hit != p.HitTokens {
		t.Fatalf("%d tokens hit, the trace has %d", hit, p.HitTokens)
	}
}

func drawnTrace(t *rapid.T) (*analyze.Analysis, []trace.Request) {
	apart := rapid.SampledFrom([]float64{0.001, 1, 700, 3e6}).Draw(t, "apart")
	rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) trace.Request {
		blocks := rapid.IntRange(0, 3).Draw(t, "blocks")
		r := trace.Request{
			Timestamp:   trace.Some(apart * rapid.Float64Range(0, 1000).Draw(t, "at")),
			InputLength: 16*blocks + 1, OutputLength: rapid.IntRange(0, 9).Draw(t, "osl"),
		}
		first := rapid.Uint64Range(0, 3).Draw(t, "first")
		for i := range blocks + 1 {
			r.HashIDs = append(r.HashIDs, 10*first+uint64(i))
		}
		return r
	}), 1, 60).Draw(t, "rows")
	a, err := analyze.Trace(trace.FromSlice(rows), analyze.Options{BlockSize: 16})
	if err != nil {
		t.Fatal(err)
	}
	return a, rows
}

// Turns with a delay arrive an assumed answer and their delay after the turn before.
func TestEstimatedArrivals(t *testing.T) {
	turn := func(delay float64) trace.Request {
		return trace.Request{SessionID: "a", Delay: trace.Some(delay), InputLength: 1, OutputLength: 101}
	}
	first := trace.Request{SessionID: "a", Timestamp: trace.Some(1000.0), InputLength: 1, OutputLength: 101}
	a := analyzed(t, analyze.Options{}, first, turn(500), turn(7500))
	at := a.Arrivals // answers take 500 ms and 100 times 20 ms
	if at.Requests != 3 || at.Estimated != 2 || at.First != 1000 || at.Last != 1000+3000+10_000 || at.DistinctTimestamps != 1 || at.Grid != nil {
		t.Errorf("arrivals %+v", at)
	}
	if !sameValues(a.Sessions.Gap, 3000, 10_000) {
		t.Errorf("gaps %v", values(a.Sessions.Gap))
	}
	first.Timestamp = trace.Opt[float64]{}
	if a := analyzed(t, analyze.Options{}, first, turn(500)); a.Arrivals != nil || a.Time != nil {
		t.Error("times are known without a timestamp")
	}
}

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
