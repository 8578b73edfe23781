package diff

import (
	"time"

	"moontide/analyze/run"
	"moontide/trace"
	"moontide/trace/stats"
)

// RunOfTTFTs returns what [Read] would for a run whose requests are due every 100
// ms, are sent on time and are answered with one token after the given TTFTs in
// milliseconds. Coverage tests draw thousands of runs, and reading would dominate
// their run time.
func RunOfTTFTs(metrics []run.Metric, ttfts []float64) *Run {
	r := &Run{GapsKept: 1, values: map[string]trace.Opt[float64]{}, counts: map[string]int{}}
	measured := make([]float64, len(ttfts))
	for i, ttft := range ttfts {
		due := time.Duration(i) * 100 * time.Millisecond
		first := due + time.Duration(ttft*float64(time.Millisecond))
		measured[i] = float64(first-due) / float64(time.Millisecond)
		r.requests = append(r.requests, request{
			Timing: run.Timing{Due: due, Ready: due, Sent: due, First: first, Last: first, Output: 1, WasSent: true, Answered: true},
			end:    first, row: i, isl: 1000, input: 1000, completed: true, ended: true, measured: true,
		})
	}
	result := run.Result{TTFT: stats.Of(measured)}
	for _, m := range metrics {
		r.values[m.Key] = m.Value(&result)
		r.counts[m.Key] = result.Latency(m.Latency).Count
	}
	return r
}

// DifferencesOf returns only the Differences of [Of].
func DifferencesOf(a, b *Run, opts Options) (all []Difference) {
	sideA, sideB := newSides([]*Run{a}, []*Run{b}, true)
	draws := drawAll(opts.Seed, opts.Resamples)
	for _, m := range opts.Metrics {
		all = append(all, difference(m, sideA, sideB, draws))
	}
	return all
}

// InFlightAt returns the number of requests in flight just after a time.
func InFlightAt(spans [][2]time.Duration, at time.Duration) int {
	var requests []request
	for _, s := range spans {
		requests = append(requests, request{Timing: run.Timing{Sent: s[0], WasSent: true}, end: s[1]})
	}
	return inFlightOf(requests).at(at)
}
