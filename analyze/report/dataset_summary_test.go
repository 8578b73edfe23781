package report

import (
	"strings"
	"testing"

	"moontide/analyze"
	"moontide/trace"
)

// The sentences match the trace.
func TestDatasetSummary(t *testing.T) {
	at := func(ms ...float64) (rows []trace.Request) {
		for i, ms := range ms {
			rows = append(rows, trace.Request{Timestamp: trace.Some(ms), InputLength: 10, HashIDs: []uint64{uint64(i)}})
		}
		return rows
	}
	for _, test := range []struct {
		name      string
		rows      []trace.Request
		says, not string
	}{
		{"no times", []trace.Request{{}}, "has 1 request without arrival times", "per second"},
		{"one time", at(5, 5), "2 requests, all at the same time.", "per second"},
		{"one with a time", append(at(0), trace.Request{}), "2 requests, 1 of them with an arrival time. Prompts", "same time"},
		{"some without a time", append(at(0, 1000), trace.Request{}), "3 requests, 2 of them with an arrival time, over 1.0 s, 2.00 per second", "bursts"},
		{"times apart", at(0, 1000, 3000), "3 requests over 3.0 s, 1.00 per second", "bursts"},
		{"coarse times", at(0, 0, 2000, 2000), "share 2 arrival times, with up to 2 requests at one time", "single"},
		{"no ids", []trace.Request{{}}, "Without block ids", "cache"},
		{"nothing shared", at(0, 1), "would never hit", "shared by several requests"},
		{"shared", append(at(0), at(1)...), "would serve 50.00 % of all prompt tokens", "never hit"},
		{"some without ids", append(append(at(0), at(1)...), trace.Request{InputLength: 9}),
			"would serve 50.00 % of all tokens of prompts with block ids", "prompt tokens"},
		{"shared context", append(at(0), at(1)...), "100.00 % of the prompt tokens are in prefixes shared by several requests", "declares"},
		{"an id twice in one prompt", []trace.Request{{InputLength: 20, HashIDs: []uint64{5, 5}}}, "would never hit", "shared by several requests"},
		{"declared", []trace.Request{{InputLength: 4, ContextLen: trace.Some(1)}}, "declares 25.00 % of the prompt tokens", "several"},
		{"no answers", at(0), "answers 0.", "output token"},
		{"answers", []trace.Request{{InputLength: 5, OutputLength: 2}}, "2.5 input tokens for each output token", "NaN"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, err := analyze.Trace(trace.FromSlice(test.rows), analyze.Options{})
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Join(summarySentences(a), " ")
			if !strings.Contains(text, test.says) || strings.Contains(text, test.not) {
				t.Errorf("summary %q, want %q and no %q", text, test.says, test.not)
			}
		})
	}
}

func TestGridSentence(t *testing.T) {
	for _, test := range []struct {
		name     string
		requests int
		grid     trace.Grid
		says     string
	}{
		{"bursts", 1000, trace.Grid{Step: 3000, Ticks: 899, Steps: 898}, "bursts that did not occur in production"},
		{"a metronome", 1000, trace.Grid{Step: 3000, Ticks: 1000, Steps: 999}, "constant rate"},
		{"hardly any together", 1000, trace.Grid{Step: 3000, Ticks: 900, Steps: 4000}, "adds no bursts"},
	} {
		if got := gridSentence(&analyze.Arrivals{Requests: test.requests, Grid: &test.grid}); !strings.Contains(got, test.says) {
			t.Errorf("%s: %q, want %q", test.name, got, test.says)
		}
	}
}

func TestRateText(t *testing.T) {
	for perSecond, want := range map[float64]string{4.191: "4.19 per second", .1: "0.10 per second", .0036: "13.0 per hour"} {
		if got := rateText(perSecond); got != want {
			t.Errorf("%v: %q, want %q", perSecond, got, want)
		}
	}
}
