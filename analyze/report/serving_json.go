package report

import (
	"io"
	"strconv"

	"moontide/analyze/dist"
	"moontide/analyze/serving"
	"moontide/replay"
	"moontide/trace"
)

// Summary is summary.json of a run: vLLM's result keys at the top level, so
// that tools which read vLLM's results read ours, and under "moontide" what
// vLLM has no key for. What was not measured is null. Latencies are in
// milliseconds, throughputs per second.
func Summary(run replay.Run, r *serving.Result) map[string]any {
	keys := map[string]any{
		"date":                    run.Started.UTC().Format("20060102-150405"),
		"backend":                 "openai-" + run.Target.Endpoint,
		"endpoint_type":           run.Target.Endpoint,
		"model_id":                run.Target.Model,
		"num_prompts":             run.Rows,
		"max_concurrency":         orNull(run.Limits.MaxConcurrency, run.Limits.MaxConcurrency > 0),
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
		"moontide":                ownSummary(run, r),
	}
	addLatency(keys, "ttft_ms", r.TTFT)
	addLatency(keys, "tpot_ms", r.TPOT)
	addLatency(keys, "itl_ms", r.ITL)
	addLatency(keys, "e2el_ms", r.E2EL)
	return keys
}

// ServingJSON writes the summary as one indented JSON object. The errors are
// those of w.
func ServingJSON(w io.Writer, run replay.Run, r *serving.Result) error {
	return writeJSON(w, Summary(run, r))
}

// ownSummary is what vLLM has no key for.
func ownSummary(run replay.Run, r *serving.Result) map[string]any {
	failed := map[string]int{}
	for class, n := range r.Errors {
		failed[string(class)] = n
	}
	evidence := []map[string]string{}
	for _, e := range r.Verdict.Evidence {
		evidence = append(evidence, map[string]string{"level": e.Level.String(), "text": e.Text})
	}
	ended, l := !run.Ended.IsZero(), r.Lengths
	own := map[string]any{
		"verdict":          r.Verdict.Level.String(),
		"evidence":         evidence,
		"simulated":        run.Target.Simulated,
		"ended":            ended,
		"not_sent":         orNull(run.NotSent, ended),
		"errors":           failed,
		"offered_rate":     numberOf(r.OfferedRate),
		"achieved_rate":    numberOf(r.AchievedRate),
		"cached_tokens":    orNull(r.Cached.Value, r.Cached.Set),
		"explained_tokens": orNull(r.Cache.Explained.Value, r.Cache.Explained.Set),
		"input_estimates":  r.InputEstimates,
		"output_estimates": r.OutputEstimates,
		"prompts_off":      orNull(l.PromptsOff, l.Prompts > 0),
		"answers_shorter":  orNull(l.AnswersShorter, l.Answers > 0),
		"answers_longer":   orNull(l.AnswersLonger, l.Answers > 0),
	}
	addLatency(own, "ttft_from_schedule_ms", r.TTFTFromSchedule)
	addLatency(own, "e2el_from_schedule_ms", r.E2ELFromSchedule)
	addLatency(own, "schedule_lag_ms", r.ScheduleLag)
	addLatency(own, "client_lag_ms", r.ClientLag)
	addLatency(own, "held_ms", r.Held)
	return own
}

// servingPercentiles are the percentiles that a summary holds.
var servingPercentiles = []float64{1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9}

func addLatency(keys map[string]any, name string, d dist.Distribution) {
	set := func(stat string, x float64) {
		keys[stat+"_"+name] = numberOf(trace.Opt[float64]{Value: x, Set: d.Count > 0})
	}
	set("mean", d.Mean)
	set("median", d.Quantile(0.5))
	set("std", d.Std)
	set("min", d.Min)
	set("max", d.Max)
	for _, p := range servingPercentiles {
		set("p"+strconv.FormatFloat(p, 'f', -1, 64), d.Quantile(p/100))
	}
}
