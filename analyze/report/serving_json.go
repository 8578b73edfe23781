package report

import (
	"io"
	"slices"

	"moontide/analyze/run"
	"moontide/replay/runfile"
	"moontide/trace"
)

// Summary is summary.json of a run: vLLM's result keys at the top level, so
// that tools which read vLLM's results read ours, and under "moontide" what
// vLLM has no key for. What was not measured is null. Latencies are in
// milliseconds, throughputs per second.
func Summary(info runfile.Run, r *run.Result) map[string]any {
	return ServingRun{Run: info, Result: r}.Summary()
}

// Summary is that of a run, with the percentiles of its view beside the usual
// ones.
func (s ServingRun) Summary() map[string]any {
	info, r := s.Run, s.Result
	keys := map[string]any{
		"date":                    info.Started.UTC().Format("20060102-150405"),
		"backend":                 "openai-" + info.Target.Endpoint,
		"endpoint_type":           info.Target.Endpoint,
		"model_id":                info.Target.Model,
		"num_prompts":             info.Rows,
		"max_concurrency":         orNull(info.Limits.MaxConcurrency, info.Limits.MaxConcurrency > 0),
		"request_rate":            numberOf(r.OfferedRate),
		"duration":                number(r.Duration.Seconds()),
		"completed":               r.Completed,
		"failed":                  r.Failed,
		"total_input_tokens":      r.Input,
		"total_output_tokens":     r.Output,
		"request_throughput":      numberOf(r.RequestRate),
		"output_throughput":       numberOf(r.OutputRate),
		"total_token_throughput":  numberOf(r.TotalRate),
		"max_output_tokens_per_s": number(r.PeakOutputRate),
		"max_concurrent_requests": r.PeakConcurrency,
	}
	if r.Goodput != nil {
		keys["request_goodput"] = numberOf(r.Goodput.Rate)
	}
	own := ownSummary(info, r)
	percentiles := slices.Compact(slices.Sorted(slices.Values(slices.Concat(servingPercentiles, s.View.Percentiles))))
	for _, m := range append(slices.Clone(run.Latencies), run.FirstStampError, run.MaxStampError) {
		to := own
		if slices.Contains(run.VLLMLatencies, m) {
			to = keys
		}
		addLatency(to, r, m, percentiles)
	}
	keys["moontide"] = own
	return keys
}

// JSON writes the summary of a run as one indented JSON object, and those of
// several as an array of them, each with its name as moontide.name. The errors
// are those of w.
func (runs ServingRuns) JSON(w io.Writer) error {
	if len(runs) == 1 {
		return writeJSON(w, runs[0].Summary())
	}
	all := []map[string]any{}
	for _, info := range runs {
		keys := info.Summary()
		keys["moontide"].(map[string]any)["name"] = info.Name
		all = append(all, keys)
	}
	return writeJSON(w, all)
}

// ownSummary is what vLLM has no key for.
func ownSummary(info runfile.Run, r *run.Result) map[string]any {
	failed := map[string]int{}
	for class, n := range r.Errors {
		failed[string(class)] = n
	}
	evidence := []map[string]string{}
	for _, e := range r.Verdict.Evidence {
		evidence = append(evidence, map[string]string{"level": e.Level.String(), "text": e.Text})
	}
	ended, l, stamped := !info.Ended.IsZero(), r.Lengths, r.StampedByKernel+r.StampedByClient > 0
	own := map[string]any{
		"verdict":           r.Verdict.Level.String(),
		"evidence":          evidence,
		"simulated":         info.Target.Simulated,
		"ended":             ended,
		"not_sent":          orNull(info.NotSent, ended),
		"errors":            failed,
		"stamped_by_kernel": orNull(r.StampedByKernel, stamped),
		"stamped_by_client": orNull(r.StampedByClient, stamped),
		"offered_rate":      numberOf(r.OfferedRate),
		"achieved_rate":     numberOf(r.AchievedRate),
		"cached_tokens":     orNull(r.Cached.Value, r.Cached.Set),
		"explained_tokens":  orNull(r.Cache.Explained.Value, r.Cache.Explained.Set),
		"input_estimates":   r.InputEstimates,
		"output_estimates":  r.OutputEstimates,
		"prompts_estimated": l.Estimated, // by the trace, so that the server's count is not compared
		"prompts_off":       orNull(l.PromptsOff, l.Prompts > 0),
		"answers_shorter":   orNull(l.AnswersShorter, l.Answers > 0),
		"answers_longer":    orNull(l.AnswersLonger, l.Answers > 0),
		"merged_chunks":     orNull(int(r.Merges.Merged), r.Merges.Chunks > 0),
		"p99_merged_ms":     numberOr(r.Merges.P99MS, r.Merges.Chunks > 0),
		"max_merged_ms":     numberOr(r.Merges.MaxMS, r.Merges.Chunks > 0),
		"cache":             predictionJSON(r.Cache.Prediction),
		"server":            serverJSON(&r.Observed.Server),
		"client":            clientJSON(&r.Observed.Client),
		"window":            windowJSON(info.Window, r),
		"thresholds":        r.Thresholds,
		"goodput":           goodputJSON(r.Goodput),
	}
	addReadDelay(own, r.ReadDelay)
	return own
}

// goodputJSON is what summary.json says of objectives, or null.
func goodputJSON(g *run.Goodput) any {
	if g == nil {
		return nil
	}
	objectives := []map[string]any{}
	for _, o := range g.Objectives {
		objectives = append(objectives, map[string]any{
			"metric": o.Latency.String(), "limit_ms": number(o.LimitMS), "met": o.Met, "share": numberOf(g.Share(o.Met)),
		})
	}
	return map[string]any{"requests": g.Requests, "good": g.Good, "share": numberOf(g.Share(g.Good)), "objectives": objectives}
}

// numberOr is x, or null where it is not known.
func numberOr(x float64, known bool) *number {
	return numberOf(trace.Opt[float64]{Value: x, Set: known})
}

func addReadDelay(keys map[string]any, d runfile.ReadDelay) {
	for stat, x := range map[string]float64{"median": d.MedianMS, "p99": d.P99MS, "max": d.MaxMS} {
		keys[stat+"_read_delay_ms"] = numberOr(x, d.Reads > 0)
	}
}

// servingPercentiles are the percentiles that a summary holds.
var servingPercentiles = []float64{1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9}

func addLatency(keys map[string]any, r *run.Result, l run.Latency, percentiles []float64) {
	all := []run.Statistic{run.Mean, run.Median, run.Std, run.Min, run.Max}
	for _, p := range percentiles {
		all = append(all, run.Percentile(p))
	}
	for _, s := range all {
		m := l.Metric(s)
		keys[m.Key] = numberOf(m.Value(r))
	}
}
