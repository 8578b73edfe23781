package trace

import (
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"testing"

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

func TestShardsMergeToTheTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := anyTrace(t)
		n := rapid.IntRange(1, 5).Draw(t, "n")
		var shards []Requests
		session := map[string]int{}
		for i := range n {
			shard := collect(t, Part(FromSlice(rows), nil, i, n))
			for _, r := range shard {
				if r.SessionID == "" {
					continue
				}
				if was, ok := session[r.SessionID]; ok && was != i {
					t.Fatalf("session %q is in shards %d and %d", r.SessionID, was, i)
				}
				session[r.SessionID] = i
			}
			shards = append(shards, FromSlice(shard))
		}
		merged := collect(t, Merge(shards...))
		last := 0.0
		for _, r := range merged {
			if r.Timestamp.Set {
				if r.Timestamp.Value < last {
					t.Fatalf("out of order: %v after %v", r.Timestamp.Value, last)
				}
				last = r.Timestamp.Value
			}
		}
		byNumber := func(a, b Request) int { return a.InputLength - b.InputLength }
		slices.SortFunc(merged, byNumber)
		if d := cmp.Diff(rows, merged); d != "" && len(rows) > 0 {
			t.Fatal(d)
		}
	})
}

func TestMergeKeepsInputOrderOnTies(t *testing.T) {
	a := []Request{{Timestamp: Some(0.0), InputLength: 1}, {Delay: Some(9.0), InputLength: 2}, {Timestamp: Some(5.0), InputLength: 3}}
	b := []Request{{Timestamp: Some(0.0), InputLength: 4}, {Timestamp: Some(4.0), InputLength: 5}}
	got := lengths(collect(t, Merge(FromSlice(a), FromSlice(b))))
	if want := []int{1, 2, 4, 5, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if rows := collect(t, Take(Merge(FromSlice(a), FromSlice(b)), 2)); len(rows) != 2 {
		t.Errorf("%d rows of a merge that is left early", len(rows))
	}
}

func TestErrorsArePassedOn(t *testing.T) {
	bad := func(yield func(Request, error) bool) {
		if yield(Request{Timestamp: Some(0.0)}, nil) {
			yield(Request{}, io.ErrNoProgress)
		}
	}
	if rows, err := Collect(Merge(FromSlice(at(0, 7)), bad)); len(rows) != 2 || !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("Merge: %d rows, error %v", len(rows), err)
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

func TestRetime(t *testing.T) {
	const n, rate = 20_000, 8.0
	rows := make([]Request, n)
	for _, tc := range []struct {
		law        string
		burstiness float64
		cv         float64
	}{{Constant, 0, 0}, {Poisson, 0, 1}, {Gamma, 1, 1}, {Gamma, 0.25, 2}, {Gamma, 4, 0.5}} {
		a := Arrivals{Process: tc.law, Rate: rate, Burstiness: tc.burstiness, Seed: 3}
		if err := a.Check(); err != nil {
			t.Fatal(err)
		}
		got := collect(t, InOrder(retime(FromSlice(rows), a)))
		if got[0].Timestamp != Some(0.0) {
			t.Errorf("%v: the first arrival is at %v", a, got[0].Timestamp)
		}
		mean, cv := meanGap(got)
		// Six standard errors of the mean and a tenth of the CV.
		if math.Abs(mean-1000/rate) > 6*tc.cv*mean/math.Sqrt(n)+1e-6 || math.Abs(cv-tc.cv) > 0.1*tc.cv+1e-4 {
			t.Errorf("%v: mean gap %v ms, CV %v; want %v and %v", a, mean, cv, 1000/rate, tc.cv)
		}
		if tc.cv > 0 && mean == 1000/rate {
			t.Errorf("%v: the arrivals were rescaled to the rate", a)
		}
		if !reflect.DeepEqual(got, collect(t, retime(FromSlice(rows), a))) {
			t.Errorf("%v: the same seed gave other arrivals", a)
		}
		a.Seed++
		if tc.cv > 0 && reflect.DeepEqual(got, collect(t, retime(FromSlice(rows), a))) {
			t.Errorf("%v: another seed gave the same arrivals", a)
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
