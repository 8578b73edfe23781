package trace

import (
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"
)

// anyTrace draws rows in order of arrival, some of them turns of sessions.
// Each row has a unique InputLength to identify it.
func anyTrace(t *rapid.T) []Request {
	rows := make([]Request, rapid.IntRange(0, 40).Draw(t, "rows"))
	at := rapid.Float64Range(0, 100).Draw(t, "first")
	for i := range rows {
		rows[i] = Request{InputLength: i + 1, OutputLength: 1, HashIDs: []uint64{uint64(i)}}
		rows[i].SessionID = rapid.SampledFrom([]string{"", "", "a", "b", "c"}).Draw(t, "session")
		if rows[i].SessionID != "" && rapid.Bool().Draw(t, "follows") {
			rows[i].Delay = Some(rapid.Float64Range(0, 1e4).Draw(t, "delay"))
			continue
		}
		at += rapid.SampledFrom([]float64{0, 0, 0.5, 3, 1000.125}).Draw(t, "gap")
		rows[i].Timestamp = Some(at)
	}
	return rows
}

func collect(t interface{ Fatal(...any) }, reqs Requests) []Request {
	rows, err := Collect(reqs)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func lengths(rows []Request) []int {
	var n []int
	for _, r := range rows {
		n = append(n, r.InputLength)
	}
	return n
}

func at(ms ...float64) []Request {
	var rows []Request
	for i, m := range ms {
		rows = append(rows, Request{Timestamp: Some(m), InputLength: i + 1})
	}
	return rows
}

// closeTo allows for rounding; times within a picosecond are equal.
func closeTo(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(a)+1e-9 }

func TestSpeedsMultiply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := anyTrace(t)
		a := rapid.Float64Range(0.01, 100).Draw(t, "a")
		b := rapid.Float64Range(0.01, 100).Draw(t, "b")
		twice := collect(t, Speed(Speed(FromSlice(rows), a), b))
		once := collect(t, Speed(FromSlice(rows), a*b))
		for i := range once {
			if !closeTo(once[i].Timestamp.Value, twice[i].Timestamp.Value) || !closeTo(once[i].Delay.Value, twice[i].Delay.Value) {
				t.Fatalf("row %d: %v and %v", i, once[i], twice[i])
			}
			if once[i].Timestamp.Set != rows[i].Timestamp.Set || once[i].Delay.Set != rows[i].Delay.Set {
				t.Fatalf("row %d: a time came or went", i)
			}
			if !slices.Equal(once[i].HashIDs, rows[i].HashIDs) {
				t.Fatalf("row %d: ids changed", i)
			}
		}
	})
}

func TestErrorsArePassedOn(t *testing.T) {
	bad := func(yield func(Request, error) bool) {
		if yield(Request{Timestamp: Some(0.0)}, nil) {
			yield(Request{}, io.ErrNoProgress)
		}
	}
	if rows, err := Collect(spread(bad, Grid{Step: 10}, 0)); len(rows) != 1 || !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("Spread: %d rows, error %v", len(rows), err)
	}
	for range spread(FromSlice(at(0, 1, 20, 30)), Grid{Step: 10}, 0) {
		break // and does not panic
	}
}

func TestSample(t *testing.T) {
	rows := make([]Request, 10_000)
	for i := range rows {
		rows[i] = Request{InputLength: i}
	}
	quarter := collect(t, Sample(FromSlice(rows), nil, 0.25, 1))
	// Binomial: sd 43; the fixed seed makes this deterministic.
	if n := len(quarter); n < 2370 || n > 2630 {
		t.Errorf("a quarter of 10000 rows is %d", n)
	}
	if d := cmp.Diff(lengths(quarter), lengths(collect(t, Sample(FromSlice(rows), nil, 0.25, 1)))); d != "" {
		t.Error("the same seed gave another sample")
	}
	if slices.Equal(lengths(quarter), lengths(collect(t, Sample(FromSlice(rows), nil, 0.25, 2)))) {
		t.Error("another seed gave the same sample")
	}
	if n := len(collect(t, Sample(FromSlice(rows), nil, 1, 1))); n != len(rows) {
		t.Errorf("all of it is %d", n)
	}
	if n := len(collect(t, Sample(FromSlice(rows), nil, 0, 1))); n != 0 {
		t.Errorf("none of it is %d", n)
	}
}

func TestWindowsTileTheTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := anyTrace(t)
		cut := rapid.Float64Range(0, 3000).Draw(t, "cut")
		early := collect(t, window(FromSlice(rows), 0, cut))
		late := collect(t, window(FromSlice(rows), cut, math.Inf(1)))
		both := append(lengths(early), lengths(late)...)
		slices.Sort(both)
		var want []int
		placed := map[string]bool{}
		before := false
		for _, r := range rows {
			switch {
			case r.Timestamp.Set:
				before = true
			case r.SessionID != "":
				before = placed[r.SessionID]
			}
			placed[r.SessionID] = before
			if before {
				want = append(want, r.InputLength)
			}
		}
		if !slices.Equal(both, want) {
			t.Fatalf("the two windows hold %v, want %v", both, want)
		}
	})
}

func TestRebase(t *testing.T) {
	rows := append([]Request{{Delay: Some(7.0)}}, at(1.7e12, 1.7e12+0.5)...)
	got := collect(t, rebase(FromSlice(rows)))
	if got[0].Timestamp.Set || got[1].Timestamp.Value != 0 || got[2].Timestamp.Value != 0.5 || got[0].Delay != Some(7.0) {
		t.Errorf("got %v", got)
	}
}

func TestSort(t *testing.T) {
	rows := at(5, 1, 5, 0)
	rows = slices.Insert(rows, 2, Request{Delay: Some(1.0), InputLength: 9})
	if got, want := lengths(collect(t, Sort(FromSlice(rows)))), []int{4, 2, 9, 1, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestInOrder(t *testing.T) {
	if rows := collect(t, InOrder(FromSlice(append(at(0, 5, 5), Request{})))); len(rows) != 4 {
		t.Errorf("%d rows", len(rows))
	}
	rows, err := Collect(InOrder(FromSlice(at(5, 6, 5.5))))
	if len(rows) != 2 || err == nil || err.Error() != "row 3 goes back in time, from 6 to 5.5 ms: sort the trace first" {
		t.Errorf("%d rows, error %v", len(rows), err)
	}
}

// Gaps have the mean and the CV of their process, and depend on the seed alone.
func TestRetime(t *testing.T) {
	const n, rate = 20_000, 8.0
	rows := make([]Request, n)
	for _, tc := range []struct {
		process    string
		burstiness float64
		cv         float64
	}{{Constant, 0, 0}, {Poisson, 0, 1}, {Gamma, 1, 1}, {Gamma, 0.25, 2}, {Gamma, 4, 0.5}} {
		a := Arrivals{Process: tc.process, Rate: rate, Burstiness: tc.burstiness, Seed: 3}
		other := a
		other.Seed++
		got := collect(t, InOrder(retime(FromSlice(rows), a)))
		mean, cv := meanGap(got)
		// Six standard errors of the mean and a tenth of the CV.
		if got[0].Timestamp != Some(0.0) || math.Abs(mean-1000/rate) > 6*tc.cv*mean/math.Sqrt(n)+1e-6 || math.Abs(cv-tc.cv) > 0.1*tc.cv+1e-4 {
			t.Errorf("%v: mean gap %v ms, CV %v from %v on; want %v and %v", a, mean, cv, got[0].Timestamp, 1000/rate, tc.cv)
		}
		same := reflect.DeepEqual(got, collect(t, retime(FromSlice(rows), other)))
		if a.Check() != nil || !reflect.DeepEqual(got, collect(t, retime(FromSlice(rows), a))) || tc.cv > 0 && (same || mean == 1000/rate) {
			t.Errorf("%v: refused, rescaled, or the seed does not matter", a)
		}
	}
}

// meanGap returns the mean of the gaps between arrivals, which ascend, and their CV.
func meanGap(rows []Request) (mean, cv float64) {
	var gaps []float64
	for i := range rows[1:] {
		gaps = append(gaps, rows[i+1].Timestamp.Value-rows[i].Timestamp.Value)
	}
	mean, std := stat.PopMeanStdDev(gaps, nil)
	return mean, std / mean
}

func TestRetimeLeavesFollowingTurns(t *testing.T) {
	rows := []Request{{SessionID: "s"}, {SessionID: "s", Delay: Some(5.0)}, {Timestamp: Some(77.0)}}
	got := collect(t, retime(FromSlice(rows), Arrivals{Process: Constant, Rate: 10}))
	if got[0].Timestamp != Some(0.0) || got[1].Timestamp.Set || got[2].Timestamp != Some(100.0) {
		t.Errorf("got %v", got)
	}
}

func TestPacingCheck(t *testing.T) {
	for _, p := range []Pacing{
		{ThinkScale: Some(-1.0)}, {ToolScale: Some(math.NaN())}, {ToolScale: Some(math.Inf(1))}, {MaxThink: -1},
	} {
		if p.Check() == nil {
			t.Errorf("%+v was accepted", p)
		}
	}
	for _, a := range []Arrivals{
		{Process: Poisson}, {Process: Poisson, Rate: -1}, {Process: Poisson, Rate: math.NaN()}, {Process: Constant, Rate: math.Inf(-1)},
		{Process: "uniform", Rate: 1}, {Rate: 1}, {Process: Gamma, Rate: 1}, {Process: Gamma, Rate: 1, Burstiness: math.NaN()},
	} {
		if a.Check() == nil {
			t.Errorf("%+v was accepted", a)
		}
	}
}

// An infinite rate makes all rows arrive at once, whatever the distribution.
func TestInfiniteRate(t *testing.T) {
	rows := []Request{{Timestamp: Some(5.0), InputLength: 1}, {Delay: Some(7.0), InputLength: 2}, {Timestamp: Some(9.0), InputLength: 3}}
	for _, distribution := range []string{Constant, Poisson, Gamma} {
		p := Pacing{Arrivals: &Arrivals{Process: distribution, Rate: math.Inf(1), Burstiness: 0.5}, Speedup: 2}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		want := []Request{{Timestamp: Some(0.0), InputLength: 1}, {Delay: Some(3.5), InputLength: 2}, {Timestamp: Some(0.0), InputLength: 3}}
		if d := cmp.Diff(want, collect(t, p.Apply(FromSlice(rows)))); d != "" {
			t.Errorf("%s: %s", distribution, d)
		}
		if p.Ramp = 1; p.Check() == nil {
			t.Error("an infinite rate is ramped")
		}
	}
}

// onGrid draws rows on the ticks of a grid, some early or late within the
// tolerance, with a few strays and some rows that only have a delay.
func onGrid(t *rapid.T, g Grid) []Request {
	var rows []Request
	at := 0.0
	for i := range rapid.IntRange(1, 60).Draw(t, "rows") {
		r := Request{InputLength: i + 1}
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			r.Delay, r.SessionID = Some(7.0), "s"
		case 1:
			at += rapid.Float64Range(0, g.Step).Draw(t, "stray")
			r.Timestamp = Some(at)
		default:
			tick := g.Tick(at + g.Step*float64(rapid.IntRange(0, 2).Draw(t, "steps")))
			at = max(at, tick+rapid.Float64Range(-0.01, 0.01).Draw(t, "jitter")*g.Step)
			r.Timestamp = Some(at)
		}
		rows = append(rows, r)
	}
	return rows
}

func TestSpreadKeepsOrderAndSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := Grid{Step: 3000, Offset: rapid.Float64Range(0, 2999).Draw(t, "offset")}
		rows := onGrid(t, g)
		seed := rapid.Uint64().Draw(t, "seed")
		got := collect(t, InOrder(spread(FromSlice(slices.Clone(rows)), g, seed)))
		if !slices.Equal(lengths(got), lengths(rows)) {
			t.Fatalf("rows %v became %v", lengths(rows), lengths(got))
		}
		for i, r := range got {
			was := rows[i]
			if r.Timestamp.Set != was.Timestamp.Set || r.Delay != was.Delay {
				t.Fatalf("row %d was %+v and is %+v", i, was, r)
			}
			if !r.Timestamp.Set {
				continue
			}
			if d := math.Abs(r.Timestamp.Value - was.Timestamp.Value); d > 1.03*g.Step || r.Timestamp.Value < 0 {
				t.Fatalf("row %d moved from %v to %v", i, was.Timestamp.Value, r.Timestamp.Value)
			}
			// A slightly early time belongs to the next tick.
			step := math.Floor((was.Timestamp.Value-g.Offset)/g.Step + 2*gridTolerance)
			if from := g.Offset + step*g.Step; r.Timestamp.Value < min(from, max(from, 0)) || r.Timestamp.Value > from+g.Step {
				t.Fatalf("row %d of the step from %v is at %v", i, from, r.Timestamp.Value)
			}
		}
		if d := cmp.Diff(got, collect(t, spread(FromSlice(slices.Clone(rows)), g, seed))); d != "" {
			t.Fatal("the same seed gave other times")
		}
	})
}

// Spread rows are no longer on a grid, and are as irregular as independent
// arrivals: gaps of a Poisson process have a CV of 1.
func TestSpreadMakesPoissonOfBursts(t *testing.T) {
	const n, step, rate = 20_000, 3000.0, 4e-3
	random := rand.New(rand.NewPCG(1, 1))
	var rows []Request
	var times []float64
	at := 0.0
	for range n {
		at += random.ExpFloat64() / rate
		rows = append(rows, Request{Timestamp: Some(math.Floor(at/step) * step)})
		times = append(times, rows[len(rows)-1].Timestamp.Value)
	}
	var d GridDetector
	for _, r := range append(slices.Clone(rows), Request{Delay: Some(1.0)}) {
		d.Add(r)
	}
	g, rowsPerTick, ok := d.Grid()
	if want, found := DetectGrid(times); !ok || !found || g != want || g.Step != step || math.Abs(rowsPerTick*float64(g.Ticks)-n) > 1e-6 {
		t.Fatalf("grid %+v, %v, %v rows a tick", g, ok, rowsPerTick)
	}
	got := collect(t, spread(FromSlice(rows), g, 1))
	var times2 []float64
	for _, r := range got {
		times2 = append(times2, r.Timestamp.Value)
	}
	if g, ok := DetectGrid(times2); ok {
		t.Errorf("spread arrivals lie on %+v", g)
	}
	if _, cv := meanGap(got); math.Abs(cv-1) > 0.03 {
		t.Errorf("CV %v of the gaps, want 1", cv)
	}
	if reflect.DeepEqual(got, collect(t, spread(FromSlice(rows), g, 2))) {
		t.Error("another seed gave the same times")
	}
}

func TestRamp(t *testing.T) {
	// A rate of 1 per ms: after t ms of a ramp of 8 ms, t*t/16 have come.
	ramp := func(rows []Request, full time.Duration) Requests {
		return (Pacing{Ramp: full * time.Millisecond}).Apply(FromSlice(rows))
	}
	got := collect(t, ramp(at(0, 1, 2, 4, 5, 6, 100), 8))
	want := []float64{0, 4, math.Sqrt(32), 8, 9, 10, 104}
	for i, r := range got {
		if r.Timestamp.Value != want[i] {
			t.Errorf("row %d arrives at %v, want %v", i, r.Timestamp.Value, want[i])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		rows, length := anyTrace(t), rapid.IntRange(1, 1e5).Draw(t, "full")
		full := float64(length)
		got := collect(t, InOrder(change(FromSlice(rows), (&Pacing{Ramp: time.Duration(length) * time.Millisecond}).scale)))
		for i, r := range got {
			if r.Delay != rows[i].Delay || r.Timestamp.Set != rows[i].Timestamp.Set {
				t.Fatalf("row %d was %+v and is %+v", i, rows[i], r)
			}
			// The inverse: the elapsed time of the original trace.
			s, was := r.Timestamp.Value, rows[i].Timestamp.Value
			if s < full {
				s = s * s / (2 * full)
			} else {
				s -= full / 2
			}
			if math.Abs(s-was) > 1e-9*(1+full+was) {
				t.Fatalf("at %v of the ramp, %v has passed, want %v", r.Timestamp.Value, s, was)
			}
		}
	})
}
