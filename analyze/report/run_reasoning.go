package report

import (
	"slices"

	"moontide/analyze/run"
)

// withTTFVT inserts TTFVT after TTFT if an answer of any run began with reasoning.
// Without reasoning it would only repeat TTFT.
func (runs Runs) withTTFVT(latencies []run.Latency) []run.Latency {
	at := slices.Index(latencies, run.TTFT) + 1
	if at == 0 || !slices.ContainsFunc(runs, func(r Run) bool { return r.Result.Reasoned > 0 }) {
		return latencies
	}
	return slices.Insert(slices.Clone(latencies), at, run.TTFVT)
}

// latencies returns the latencies that the first run shows.
func (runs Runs) latencies() []run.Latency {
	if view := runs[0].View; view.Latencies != nil {
		return view.Latencies
	}
	return runs.withTTFVT(run.VLLMLatencies)
}

// reasoningMetrics returns the metric of reasoning tokens if a server reported any.
func (runs Runs) reasoningMetrics() []run.Metric {
	if !slices.ContainsFunc(runs, func(r Run) bool { return r.Result.Reasoning.Value > 0 }) {
		return nil
	}
	return []run.Metric{run.MustMetric("mean_reasoning_tokens")}
}
