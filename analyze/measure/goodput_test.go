package measure_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"moontide/analyze/measure"
	"moontide/analyze/slo"
	"moontide/replay"
	"moontide/trace"
)

// Of the run of mixed, by hand: of its 5 requests 3 were answered, rows 0, 1 and
// 2, with a TTFT of 100, 100 and 40 ms, an E2EL of 150, 100 and 80, a TPOT of
// 12.5, none and 40, and gaps of 20 and 30, none, and 40.
func TestGoodput(t *testing.T) {
	for text, want := range map[string][]int{ // that meet each, and all
		"ttft:100":                     {3, 3},
		"ttft:99.999999":               {1, 1},
		"tpot:12.5":                    {2, 2}, // row 1 has none to miss
		"ttst:20":                      {2, 2},
		"itl:29":                       {1, 1}, // the longest gap counts
		"itl:30":                       {2, 2},
		"e2el:100":                     {2, 2},
		"e2el_from_schedule:150":       {1, 1},
		"client_lag:2":                 {1, 1}, // 1, 3 and 60 ms
		"ttft:100,tpot:12.5,e2el:100":  {3, 2, 2, 1},
		"ttft:0,tpot:0":                {0, 1, 0},
		"TTFT:100 tpot:1000 e2el:1000": {3, 3, 3, 3},
	} {
		objectives, err := slo.ParseObjectives(text)
		if err != nil {
			t.Fatal(err)
		}
		g := compute(t, measure.Options{Objectives: objectives}, mixed()...).Goodput
		for i, o := range g.Objectives {
			if o.Met != want[i] {
				t.Errorf("%s: %v is met by %d, want %d", text, o.Objective, o.Met, want[i])
			}
		}
		good := want[len(want)-1]
		// From 1 to 1302 ms.
		if g.Requests != 5 || g.Good != good || g.Share(g.Good) != trace.Some(float64(good)/5) || math.Abs(g.Rate.Value-float64(good)/1.301) > 1e-9 {
			t.Errorf("%s: %+v, want %d good", text, g, good)
		}
	}
	if g := compute(t, measure.Options{}, mixed()...).Goodput; g != nil {
		t.Errorf("without objectives: %+v", g)
	}
	// Like throughput, goodput counts the requests that end inside a window.
	opts := measure.Options{Window: measure.Span{From: at(90), To: at(300)}, Objectives: []measure.Objective{{Latency: measure.TTFT, LimitMS: 1000}}}
	if g := compute(t, opts, mixed()...).Goodput; g.Requests != 2 || g.Good != 2 || g.Rate != trace.Some(2/0.21) {
		t.Errorf("in a window: %+v", g)
	}
}

func TestParseObjectives(t *testing.T) {
	for text, want := range map[string]string{
		"":                "names no objective",
		"ttft":            `"ttft" is no objective`,
		"latency:3":       `unknown metric "latency"`,
		"ttft:":           "no number of milliseconds",
		"ttft:-1":         "no number of milliseconds",
		"ttft:NaN":        "no number of milliseconds",
		"ttft:1,ttft:2":   "ttft has two limits",
		"ttft:1,tpot:ten": `the limit of tpot is no number of milliseconds: "ten"`,
	} {
		if _, err := slo.ParseObjectives(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// What a request has of a metric is what it adds to the run's distribution.
func TestMetricsOfARequestAreThoseOfTheRun(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rec := anyRecord(rt)
		rec.Class = replay.OK
		r := compute(t, measure.Options{}, rec)
		for _, m := range measure.Latencies {
			own, d := m.Of(&rec), r.Latency(m)
			if own.Set != (d.Count > 0) || own.Set && own.Value != d.Max {
				rt.Errorf("%s: %v of the request, %d values up to %v of the run", m, own, d.Count, d.Max)
			}
		}
	})
}

// judged applies a condition to a run.
func judged(t *testing.T, text string, r *measure.Result) slo.Judgement {
	t.Helper()
	c, err := slo.ParseCondition(text)
	if err != nil {
		t.Fatal(err)
	}
	return slo.Gate{Condition: c}.Judge(r)
}

// reasoned are four answers whose first tokens arrive after 100, 100, 200 and 50 ms
// and whose first visible ones after 100, 300 and 200 ms; the last has none.
func reasoned() []replay.Record {
	records := []replay.Record{
		answered(0, 100, 110), answered(1000, 1100, 1200, 1300, 1310), answered(2000, 2200, 2300), answered(3000, 3050, 3060),
	}
	for i := range records {
		records[i].Row = i
	}
	records[1].FirstVisible = instant(1300)
	records[1].Counts.Reasoning = trace.Some(2)
	records[2].Counts.Reasoning = trace.Some(0)
	records[3].ReasoningOnly = true
	records[3].Counts.Reasoning = trace.Some(3)
	return records
}

func TestTTFVT(t *testing.T) {
	r := compute(t, measure.Options{}, reasoned()...)
	if diff := cmp.Diff(spread{3, 600, 100, 200, 200}, spreadOf(r.TTFVT), close); diff != "" {
		t.Errorf("TTFVT: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(spread{4, 450, 50, 100, 112.5}, spreadOf(r.TTFT), close); diff != "" {
		t.Errorf("TTFT: -want +got:\n%s", diff)
	}
	if r.Reasoned != 2 || r.ReasoningOnly != 1 || r.Reasoning != trace.Some(5.0/3) {
		t.Errorf("%d reasoned, %d of them only, %v tokens", r.Reasoned, r.ReasoningOnly, r.Reasoning)
	}
}

// Objectives and gates know TTFVT, also by the name that other tools have for it. An
// answer that shows nothing meets no limit.
func TestTTFVTObjective(t *testing.T) {
	for text, met := range map[string]int{"ttfvt:1e9": 3, "ttfo:200": 2, "TTFVT:100": 1, "ttft:100": 3} {
		objectives, err := slo.ParseObjectives(text)
		if err != nil {
			t.Fatal(err)
		}
		if g := compute(t, measure.Options{Objectives: objectives}, reasoned()...).Goodput; g.Good != met || g.Requests != 4 {
			t.Errorf("%s: met by %d of %d, want %d", text, g.Good, g.Requests, met)
		}
	}
	r := compute(t, measure.Options{}, reasoned()...)
	for text, passes := range map[string]bool{
		"mean_ttfvt<200.1ms": true, "mean_ttfvt_ms<199": false, "max_ttfo<301ms": true, "mean_reasoning_tokens<2": true, "mean_reasoning_tokens<1.6": false,
	} {
		if j := judged(t, text, r); j.Passed != passes {
			t.Errorf("%s: %+v", text, j)
		}
	}
}
