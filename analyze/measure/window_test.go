package measure_test

import (
	"strings"
	"testing"
	"time"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
)

// steady is a run of n answers, one every step ms, each with its tokens gap ms
// apart, the first of them gap ms after its sending.
func steady(n, tokens int, step, gap float64) (records []replay.Record) {
	for i := range n {
		sent := step * float64(i)
		var chunks []float64
		for k := range tokens {
			chunks = append(chunks, sent+gap*float64(k+1))
		}
		rec := answered(sent, chunks...)
		rec.Row, rec.InputLength = i, 1000
		rec.Counts = replay.Counts{Input: trace.Some(1000), Output: trace.Some(tokens)}
		records = append(records, rec)
	}
	return records
}

func measuredIn(t *testing.T, w runfile.Window, records []replay.Record) *measure.Result {
	t.Helper()
	extent, err := measure.Extent(each(records), w)
	if err != nil {
		t.Fatal(err)
	}
	span, err := measure.Cut(extent, w)
	if err != nil {
		t.Fatal(err)
	}
	return compute(t, measure.Options{Window: span}, records...)
}

// The first and the last requests sent can be left out, however long the others take.
func TestWindowOfRequests(t *testing.T) {
	records := steady(100, 512, 100, 20)
	r := measuredIn(t, runfile.Window{WarmupRequests: 10, CooldownRequests: 20}, records)
	want := measure.Span{From: time.Second, To: 9900 * time.Millisecond, SentUntil: 7900 * time.Millisecond}
	if r.Completed != 70 || r.Window != want {
		t.Errorf("%d completed in %+v, want 70 in %+v", r.Completed, r.Window, want)
	}
	nothing := runfile.Window{WarmupRequests: 60, CooldownRequests: 40}
	if extent, err := measure.Extent(each(records), nothing); err != nil {
		t.Error(err)
	} else if _, err := measure.Cut(extent, nothing); err == nil {
		t.Error("a window without requests is cut")
	}
}

// The arithmetic of published results with warm-up and cool-down: the tokens of
// a window are far more than those of the requests inside it. 100 answers of 512
// tokens, 100 ms apart, 20 ms a token, so each takes 10.24 s and the run 20.14.
// Of the window from 4 to 18 s, worked out by hand:
//   - wholly inside are those sent at 4.0, 4.1 .. 7.7 s: 38 (the one of 7.8 ends
//     at 18.04);
//   - those sent at 0 .. 7.7 s end inside: 78;
//   - a token arrives at sent + 20 ms * k. Of those sent at s <= 4 s, tokens
//     with 4 <= s + 0.02k are inside, of those sent later all, up to 18 s.
func TestWindow(t *testing.T) {
	records := steady(100, 512, 100, 20)
	// 20.14 s: so a cool-down of 2.14.
	r := measuredIn(t, runfile.Window{WarmupSeconds: 4, CooldownSeconds: 2.14}, records)
	if r.Window != (measure.Span{From: 4 * time.Second, To: 18 * time.Second}) || r.Duration != 14*time.Second {
		t.Fatalf("window %v, duration %v", r.Window, r.Duration)
	}
	tokens := 0
	for i := range 100 {
		for k := 1; k <= 512; k++ {
			if at := 100*i + 20*k; at >= 4000 && at <= 18000 {
				tokens++
			}
		}
	}
	if r.Completed != 38 || r.Ended != 78 || r.Input != 38*1000 || r.Output != tokens || tokens <= 38*512 {
		t.Errorf("%d completed, %d ended, %d in, %d out, want 38, 78, 38000, %d", r.Completed, r.Ended, r.Input, r.Output, tokens)
	}
	if r.RequestRate != trace.Some(78.0/14) || r.OutputRate != trace.Some(float64(tokens)/14) || r.TotalRate != trace.Some(float64(tokens+38000)/14) {
		t.Errorf("rates %v %v %v", r.RequestRate, r.OutputRate, r.TotalRate)
	}
	if r.TTFT.Count != 38 || r.E2EL.Count != 38 || r.ITL.Count != 38*511 || r.TPOT.Mean != 20 {
		t.Errorf("%d TTFT, %d E2EL, %d ITL, TPOT %v", r.TTFT.Count, r.E2EL.Count, r.ITL.Count, r.TPOT.Mean)
	}
	// Sent from 4.0 to 9.9 s, in steps of 0.1: 60 in 5.9 s.
	if r.ClientLag.Count != 60 || r.AchievedRate != trace.Some(60/5.9) || r.OfferedRate != trace.Some(60/5.9) {
		t.Errorf("%d lags, rates %v and %v", r.ClientLag.Count, r.AchievedRate, r.OfferedRate)
	}
	// All 100 are in flight at 10 s.
	if r.PeakConcurrency != 100 || r.PeakOutputRate > 5000 {
		t.Errorf("peaks %d and %v", r.PeakConcurrency, r.PeakOutputRate)
	}
}

// One request a case, and a window from 1 to 2 s.
func TestWhatIsInAWindow(t *testing.T) {
	failed := func(rec replay.Record) replay.Record {
		rec.Class = replay.Truncated
		return rec
	}
	window := measure.Options{Window: measure.Span{From: time.Second, To: 2 * time.Second}}
	for _, test := range []struct {
		name                             string
		rec                              replay.Record
		completed, ended, failed, output int
		peak                             int
	}{
		{"before", answered(100, 200, 900), 0, 0, 0, 0, 0},
		{"behind", answered(2001, 2100), 0, 0, 0, 0, 0},
		{"its edges", answered(1000, 1500, 2000), 1, 1, 0, 2, 1},
		{"begins before", answered(999, 1000, 1500), 0, 1, 0, 2, 1},
		{"ends behind", answered(1000, 1500, 2001), 0, 0, 0, 1, 1},
		{"around", answered(500, 900, 1100, 1900, 2100), 0, 0, 0, 2, 1},
		{"fails inside", failed(answered(1100, 1200, 1300)), 0, 0, 1, 2, 1},
		{"fails behind", failed(answered(1100, 1200, 2300)), 0, 0, 0, 1, 1},
	} {
		r := compute(t, window, test.rec)
		if r.Completed != test.completed || r.Ended != test.ended || r.Failed != test.failed || r.Output != test.output || r.PeakConcurrency != test.peak {
			t.Errorf("%s: completed %d, ended %d, failed %d, output %d, peak %d", test.name, r.Completed, r.Ended, r.Failed, r.Output, r.PeakConcurrency)
		}
	}
	// A chunk weighs its share of tokens, inside as elsewhere.
	rec := answered(500, 900, 1100, 1900, 2100)
	rec.OutputLength, rec.Counts.Output = 10, trace.Some(10)
	if r := compute(t, window, rec); r.Output != 5 {
		t.Errorf("%d tokens of 10 in 4 chunks", r.Output)
	}
}

// The prediction includes requests sent before the window.
func TestPredictionReachesBeyondTheWindow(t *testing.T) {
	opts := inBlocksOf10
	opts.Window = measure.Span{From: at(90), To: at(1000)}
	c := compute(t, opts, asked(0, 0, 50, 250, 0, 1, 2, 3), asked(1, 100, 150, 250, 200, 1, 2, 6)).Cache
	if c.Prediction.Requests != 1 || c.Prediction.Predicted != 200 || c.Prediction.Equal != 1 || c.MaxHits != trace.Some(200) {
		t.Errorf("%+v", c)
	}
}

func TestCut(t *testing.T) {
	extent := measure.Span{From: time.Second, To: 11 * time.Second}
	for w, want := range map[runfile.Window]measure.Span{
		{}:                                       {},
		{WarmupSeconds: 2}:                       {From: 3 * time.Second, To: 11 * time.Second},
		{CooldownSeconds: 2.5}:                   {From: time.Second, To: 8500 * time.Millisecond},
		{WarmupSeconds: 4, CooldownSeconds: 5.9}: {From: 5 * time.Second, To: 5100 * time.Millisecond},
	} {
		if got, err := measure.Cut(extent, w); err != nil || got != want {
			t.Errorf("%+v: %v, %v, want %v", w, got, err, want)
		}
	}
	_, err := measure.Cut(extent, runfile.Window{WarmupSeconds: 4, CooldownSeconds: 6})
	if err == nil || !strings.Contains(err.Error(), "a warm-up of 4s and a cool-down of 6s leave nothing of a run of 10s") {
		t.Error(err)
	}
}
