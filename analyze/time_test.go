package analyze_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"moontide/analyze"
	"moontide/trace"
	"moontide/trace/stats"
)

// phase is a stretch of a made trace: minutes at a rate per second with mean lengths.
type phase struct{ minutes, rate, isl, osl float64 }

// made draws Poisson arrivals and exponential lengths; grow is the factor by which
// prompts get longer from the start to the end.
func made(seed uint64, grow float64, phases ...phase) (all []trace.Request) {
	random := stats.NewStream(seed, "made")
	end := 0.0
	for _, p := range phases {
		end += p.minutes * 60_000
	}
	at, from := 0.0, 0.0
	for _, p := range phases {
		from += p.minutes * 60_000
		for ; at < from; at += random.ExpFloat64() * 1000 / p.rate {
			all = append(all, trace.Request{
				Timestamp:   trace.Some(at),
				InputLength: 1 + length(random, p.isl*math.Pow(grow, at/end)), OutputLength: 1 + length(random, p.osl),
			})
		}
	}
	return all
}

func length(random *rand.Rand, mean float64) int { return int(mean * random.ExpFloat64()) }

// Steady traffic has one regime and no drift, at any seed that is tried.
func TestSteadyTime(t *testing.T) {
	for seed := range uint64(20) {
		over := analyzed(t, analyze.Options{}, made(seed, 1, phase{60, 2, 1000, 200})...).Time
		if len(over.Regimes) != 1 || over.Rate.Drifts || over.ISL.Drifts || over.OSL.Drifts {
			t.Errorf("seed %d: %d regimes, drift %v %v %v", seed, len(over.Regimes), over.Rate.Drifts, over.ISL.Drifts, over.OSL.Drifts)
		}
		if c := over.ISL.CV.Value / over.ISL.ByChance.Value; c < .7 || c > 1.35 {
			t.Errorf("seed %d: the CV of windows is %.2f times that of chance", seed, c)
		}
	}
}

func TestRegimes(t *testing.T) {
	over := analyzed(t, analyze.Options{}, made(1, 1, phase{20, 2, 1000, 200}, phase{20, 4, 1000, 200}, phase{20, 4, 1000, 400})...).Time
	if over.Step != 60_000 || len(over.Regimes) != 3 {
		t.Fatalf("%d regimes in windows of %v ms", len(over.Regimes), over.Step)
	}
	for i, want := range []phase{{20, 2, 1000, 200}, {20, 4, 1000, 200}, {20, 4, 1000, 400}} {
		r := over.Regimes[i]
		for _, is := range [][2]float64{
			{(r.To - r.From) / 60_000, want.minutes}, {r.Rate().Value, want.rate},
			{r.ISL.Mean().Value, want.isl}, {r.OSL.Mean().Value, want.osl},
		} {
			if is[0] < .9*is[1] || is[0] > 1.1*is[1] {
				t.Errorf("regime %d: %v, want %v", i, is[0], is[1])
			}
		}
	}
	if !over.OSL.Drifts || over.ISL.Drifts {
		t.Errorf("trends %+v, %+v", over.OSL.Trend, over.ISL.Trend)
	}
}

// Prompts that grow to three times their length drift: the last third has about
// twice the length of the first.
func TestDrift(t *testing.T) {
	over := analyzed(t, analyze.Options{}, made(2, 3, phase{60, 3, 1000, 200})...).Time
	if ratio := over.ISL.Ratio().Value; !over.ISL.Drifts || ratio < 1.9 || ratio > 2.3 || over.ISL.Trend.P > 1e-6 {
		t.Errorf("drift %v, ratio %v, trend %+v", over.ISL.Drifts, ratio, over.ISL.Trend)
	}
	if over.Rate.Drifts || over.OSL.Drifts {
		t.Errorf("trends %+v, %+v", over.Rate.Trend, over.OSL.Trend)
	}
	if a := over.ISL.Autocorrelation; len(a) != 12 || a[0] < .5 || a[0] < a[11] {
		t.Errorf("autocorrelation %v", a)
	}
}

// Windows cover the trace without gaps, and their sums are those of the trace, as are
// those of merged windows and of regimes.
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
		all := [][]analyze.Window{over.Windows, merged}
		var regimes []analyze.Window
		for _, r := range over.Regimes {
			regimes = append(regimes, r.Window)
		}
		if regimes != nil {
			all = append(all, regimes)
		}
		for _, windows := range all {
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
		isl += w.ISL.Mean().Value * float64(w.Requests)
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
