package diff_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"moontide/analyze/diff"
	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
)

// onTarget returns run.json of a run against a server, an embedded endpoint, or
// engines in virtual time.
func onTarget(simulated, virtual bool) runfile.Run {
	info := ended()
	info.Target.Simulated, info.Target.Virtual = simulated, virtual
	return info
}

// sped multiplies the time until the first token and the time after it by factors
// of each request.
func sped(records []replay.Record, by func(r *replay.Record) (first, decode float64)) []replay.Record {
	records = slices.Clone(records)
	for i := range records {
		r := &records[i]
		first, decode := by(r)
		ttft, rest := r.First.Value-r.Sent.Value, r.Last.Value-r.First.Value
		r.First.Value = r.Sent.Value + time.Duration(first*float64(ttft))
		r.Last.Value = r.First.Value + time.Duration(decode*float64(rest))
		r.Done = r.Last.Value
	}
	return records
}

// One side has to be nearer to a server than the other.
func TestPredicts(t *testing.T) {
	records := streamed(1, 100)
	runs := map[string]*diff.Run{}
	for name, target := range map[string][2]bool{"server": {}, "embedded": {true, false}, "virtual": {true, true}} {
		runs[name] = read(t, name, onTarget(target[0], target[1]), records, run.Options{})
	}
	for _, test := range []struct{ a, b, predicted string }{
		{"server", "server", ""}, {"virtual", "virtual", ""}, {"embedded", "embedded", ""},
		{"virtual", "server", "a"}, {"server", "virtual", "b"}, {"server", "embedded", "b"}, {"virtual", "embedded", "a"},
		{"virtual,server", "server", ""}, {"virtual", "server,embedded", ""}, {"virtual,virtual", "server,server", "a"},
	} {
		var sides [2][]*diff.Run
		for i, names := range []string{test.a, test.b} {
			for name := range strings.SplitSeq(names, ",") {
				sides[i] = append(sides[i], runs[name])
			}
		}
		got := ""
		if p := diff.Of(sides[0], sides[1], diff.Options{Resamples: 20}).Prediction; p != nil {
			if got = "a"; p.OfB {
				got = "b"
			}
		}
		if got != test.predicted {
			t.Errorf("%s and %s: predicted %q, want %q", test.a, test.b, got, test.predicted)
		}
	}
	other := slices.Clone(records)
	other[3].InputLength++
	if p := diff.Of([]*diff.Run{runs["server"]}, []*diff.Run{read(t, "b", onTarget(true, true), other, run.Options{})}, diff.Options{Resamples: 20}).Prediction; p != nil {
		t.Error("other requests are predicted")
	}
}

// The errors are those of the simulated side, on whichever side it is, and those of
// the phases add up to the error of E2EL.
func TestPredictionErrors(t *testing.T) {
	records := streamed(1, 400)
	measured := read(t, "m", onTarget(false, false), records, run.Options{})
	predicted := read(t, "p", onTarget(true, true), sped(records, func(*replay.Record) (float64, float64) { return 1.25, 0.5 }), run.Options{})
	left := diff.Of([]*diff.Run{predicted}, []*diff.Run{measured}, diff.Options{Seed: 1}).Prediction
	right := diff.Of([]*diff.Run{measured}, []*diff.Run{predicted}, diff.Options{Seed: 1}).Prediction
	right.OfB = false
	if d := cmp.Diff(left, right, cmp.Comparer(func(a, b run.Metric) bool { return a.Key == b.Key })); d != "" {
		t.Errorf("the sides exchanged:\n%s", d)
	}
	want := map[string]float64{"mean_ttft_ms": 0.25, "p99_ttft_ms": 0.25, "mean_tpot_ms": -0.5, "cached_share": 0}
	for _, e := range left.Errors {
		if relative, ok := want[e.Metric.Key]; ok && math.Abs(e.Relative.Value-relative) > 1e-6 {
			t.Errorf("%s: error %v, want %v", e.Metric.Key, e.Relative, relative)
		}
		if e.Metric.Key == "mean_e2el_ms" {
			sum := 0.0
			for _, p := range left.Phases {
				sum += p.Predicted - p.Measured
			}
			if math.Abs(sum-(e.Predicted-e.Measured)) > 1e-6 {
				t.Errorf("phases add up to %v of %v", sum, e.Predicted-e.Measured)
			}
		}
		delete(want, e.Metric.Key)
	}
	if len(want) > 0 {
		t.Errorf("no errors of %v", want)
	}
	if c := left.Cached; c.Equal != 400 || c.Fewer+c.More != 0 || c.Measured != c.Predicted {
		t.Errorf("cached %+v", c)
	}
	if f := left.Focus; len(f.Where) > 0 || f.Requests != 1 {
		t.Errorf("errors in proportion have the focus %+v", f)
	}
}

// A fault of the model is found where it was put: in a phase, for some prompts at
// some load, or for requests whose cached tokens it gets wrong.
func TestFocus(t *testing.T) {
	records := streamed(1, 2000)
	for i := range records {
		r := &records[i]
		r.Counts.Cached = trace.Some(0)
		if i%1000 >= 500 { // four times as many in flight
			r.Last.Value += 700 * time.Millisecond
			r.Done = r.Last.Value
		}
	}
	of := func(measured, predicted []replay.Record) diff.Focus {
		measuredRun := read(t, "m", onTarget(false, false), measured, run.Options{})
		c := diff.Of([]*diff.Run{read(t, "p", onTarget(true, true), predicted, run.Options{})}, []*diff.Run{measuredRun}, diff.Options{Resamples: 20})
		for _, a := range c.Attributions {
			sum := 0.0
			for _, band := range a.Bands {
				sum += band.Share
			}
			if math.Abs(sum-1) > 1e-9 {
				t.Errorf("%s: shares add up to %v", a.By, sum)
			}
		}
		return c.Prediction.Focus
	}
	long, busy := 10_100, func(r *replay.Record) bool { return r.Row%1000 >= 510 }
	f := of(records, sped(records, func(r *replay.Record) (float64, float64) {
		if r.InputLength > long && busy(r) {
			return 6, 1.01
		}
		return 1.01, 1.01
	}))
	names := map[string]string{}
	for _, w := range f.Where {
		names[w.By] = w.Band
	}
	if f.Phase != diff.UntilFirstToken || f.Share < 0.8 || f.Requests > 0.2 || len(f.Where) != 2 ||
		!strings.HasPrefix(names["uncached prompt tokens"], "above ") || !strings.HasPrefix(names["requests in flight when sent"], "above ") {
		t.Errorf("long prompts under load: %+v", f)
	}
	even := streamed(1, 2000)
	f = of(even, sped(even, func(r *replay.Record) (float64, float64) { return 1.1, 2 }))
	if f.Phase != diff.Decode || f.Share < 0.8 || len(f.Where) > 0 {
		t.Errorf("slow decoding: %+v", f)
	}
	missed := sped(records, func(r *replay.Record) (float64, float64) {
		if r.Row%10 == 0 {
			return 5, 1
		}
		return 1.02, 1
	})
	for i := range missed {
		if i%10 == 0 {
			missed[i].Counts.Cached = trace.Some(100)
		}
	}
	f = of(records, missed)
	if want := []diff.Where{{By: "cached tokens", Band: "predicted more"}}; f.Phase != diff.UntilFirstToken || !slices.Equal(f.Where, want) {
		t.Errorf("wrong cached tokens: %+v", f)
	}
}

// Requests in flight are those sent and not ended, counted one by one.
func TestInFlight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var spans [][2]time.Duration
		for range rapid.IntRange(1, 20).Draw(t, "requests") {
			sent := rapid.IntRange(0, 20).Draw(t, "sent")
			spans = append(spans, [2]time.Duration{time.Duration(sent), time.Duration(sent + rapid.IntRange(1, 20).Draw(t, "time"))})
		}
		for _, at := range spans {
			want := 0
			for _, s := range spans {
				if s[0] <= at[0] && at[0] < s[1] {
					want++
				}
			}
			if got := diff.InFlightAt(spans, at[0]); got != want {
				t.Fatalf("%d in flight at %d, want %d: %v", got, at[0], want, spans)
			}
		}
	})
}
