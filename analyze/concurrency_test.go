package analyze_test

import (
	"testing"

	"pgregory.net/rapid"

	"moontide/analyze"
	"moontide/trace"
)

func TestConcurrency(t *testing.T) {
	row := func(ms float64, osl int) trace.Request {
		return trace.Request{Timestamp: trace.Some(ms), OutputLength: osl}
	}
	none, some := trace.Opt[float64]{}, trace.Some[float64]
	tests := []struct {
		name       string
		rows       []trace.Request
		ttft, tpot float64
		want       analyze.Concurrency
	}{
		// 0..200 and 150..350 and 2000..2190: 590 ms of 2190, three in 2 s.
		{"overlapping", []trace.Request{row(0, 11), row(2000, 10), row(150, 11)}, 100, 10,
			analyze.Concurrency{Little: some(3.0 / 2000 * 590 / 3), Mean: some(590.0 / 2190), Peak: 2}},
		{"one leaves as the next comes", []trace.Request{row(0, 1), row(100, 1), row(200, 1)}, 100, 10,
			analyze.Concurrency{Little: some(1.5), Mean: some(1), Peak: 1}},
		{"empty answers take a first token's time", []trace.Request{row(0, 0), row(0, 1), row(1000, 0)}, 500, 10,
			analyze.Concurrency{Little: some(1.5), Mean: some(1), Peak: 2}},
		{"all at once", []trace.Request{row(7, 3), row(7, 3)}, 0, 5,
			analyze.Concurrency{Little: none, Mean: some(2), Peak: 2}},
		{"no time is not in flight", []trace.Request{row(0, 2), row(0, 2), row(0, 1), row(10, 1)}, 0, 5,
			analyze.Concurrency{Little: some(1), Mean: some(1), Peak: 2}},
		{"never in flight", []trace.Request{row(7, 1)}, 0, 5, analyze.Concurrency{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := analyzed(t, analyze.Options{}, test.rows...).Arrivals.Concurrency(test.ttft, test.tpot)
			if !sameOpt(got.Little, test.want.Little) || !sameOpt(got.Mean, test.want.Mean) || got.Peak != test.want.Peak {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func TestPeakConcurrencyAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ttft := float64(rapid.IntRange(0, 2).Draw(rt, "ttft"))
		tpot := float64(rapid.IntRange(0, 2).Draw(rt, "tpot"))
		var rows []trace.Request
		for range rapid.IntRange(1, 20).Draw(rt, "requests") {
			rows = append(rows, trace.Request{
				Timestamp:    trace.Some(float64(rapid.IntRange(0, 12).Draw(rt, "at"))),
				OutputLength: rapid.IntRange(0, 4).Draw(rt, "osl"),
			})
		}
		a, err := analyze.Trace(trace.FromSlice(rows), analyze.Options{})
		if err != nil {
			rt.Fatal(err)
		}
		peak := 0
		for now := range 40 { // all times are whole
			n := 0
			for _, r := range rows {
				takes := ttft + tpot*float64(max(0, r.OutputLength-1))
				if since := float64(now) - r.Timestamp.Value; since >= 0 && since < takes {
					n++
				}
			}
			peak = max(peak, n)
		}
		if got := a.Arrivals.Concurrency(ttft, tpot).Peak; got != peak {
			rt.Fatalf("peak %d, want %d", got, peak)
		}
	})
}
