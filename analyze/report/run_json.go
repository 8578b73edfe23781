package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/jsonscan"
	"moontide/trace/stats"
)

// Summary returns the summary.json of a run: vLLM's result keys at the top level,
// everything else under "moontide". Values that were not measured are null.
// Latencies are in milliseconds, throughputs per second.
func (r Run) Summary() Summary {
	info, result := r.Info, r.Result
	keys := map[string]any{
		"date":            info.Started.UTC().Format("20060102-150405"), // start of the run, UTC
		"backend":         "openai-" + info.Target.Endpoint,
		"endpoint_type":   info.Target.Endpoint,
		"model_id":        info.ModelText(),
		"num_prompts":     info.Rows,                                                              // rows of the trace
		"max_concurrency": orNull(info.Settings.MaxConcurrency, info.Settings.MaxConcurrency > 0), // limit of requests in flight
		"request_rate":    result.OfferedRate,                                                     // offered, by the trace
	}
	if result.Goodput != nil {
		keys["request_goodput"] = result.Goodput.Rate
	}
	own := r.ownSummary()
	for _, m := range measure.BlockMetrics(nil) {
		keys[m.Key] = m.Value(result)
	}
	delete(keys, "cached_tokens") // not a key of vLLM
	for _, m := range measure.Metrics() {
		if m.Extra || m.Key == "cached_tokens" {
			own[m.Key] = m.Value(result)
		}
	}
	for _, l := range slices.Concat(measure.Latencies, []measure.Latency{measure.FirstStampError, measure.MaxStampError}) {
		to := own
		if slices.Contains(measure.VLLMLatencies, l) {
			to = keys
		}
		for _, s := range r.summaryStatistics() {
			m := l.Metric(s)
			to[m.Key] = m.Value(result)
		}
	}
	keys["moontide"] = own
	return keys
}

var fiveStatistics = []measure.Statistic{measure.Mean, measure.Median, measure.Std, measure.Min, measure.Max}

// Summary is a JSON object.
type Summary map[string]any

// MarshalJSON writes numbers without exponents.
func (s Summary) MarshalJSON() ([]byte, error) { return plainJSON(map[string]any(s)) }

// summaryStatistics returns the statistics of each latency in the summary.
func (r Run) summaryStatistics() []measure.Statistic {
	return withPercentiles(fiveStatistics, slices.Concat([]float64{1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9}, r.View.Percentiles))
}

// JSON writes the summary of one run as a JSON object. Several are an array, with their
// names as moontide.name.
func (runs Runs) JSON(w io.Writer) error {
	if len(runs) == 1 {
		return writeJSON(w, runs[0].Summary())
	}
	all := []Summary{}
	for _, r := range runs {
		keys := r.Summary()
		keys["moontide"].(map[string]any)["name"] = r.Name
		all = append(all, keys)
	}
	return writeJSON(w, all)
}

func (r Run) ownSummary() map[string]any {
	info, result := r.Info, r.Result
	failed := map[string]int{}
	for class, n := range result.Errors {
		failed[string(class)] = n
	}
	ended, l, stamped := !info.Ended.IsZero(), result.Lengths, result.StampedByKernel+result.StampedByClient > 0
	delay := result.ReadDelay
	return map[string]any{
		"verdict":              result.Verdict.Level.String(),
		"evidence":             verdictOf(result.Verdict).Evidence,
		"notes":                noteTexts(r.notes()),
		"simulated":            info.Target.Simulated,
		"ended":                ended,                                   // not killed
		"not_sent":             orNull(info.NotSent, ended),             // rows of the trace
		"errors":               failed,                                  // failed requests by class
		"abandoned":            abandonedJSON(result),                   // requests that the client closed before they were complete
		"stamped_by_kernel":    orNull(result.StampedByKernel, stamped), // completed requests, by who timestamped arrivals
		"stamped_by_client":    orNull(result.StampedByClient, stamped),
		"offered_rate":         result.OfferedRate,
		"achieved_rate":        result.AchievedRate,
		"explained_tokens":     result.Cache.MaxHits,                             // upper bound of the cached tokens of a cache that starts empty
		"input_estimates":      result.InputEstimates,                            // completed requests without the server's count of prompt tokens
		"output_estimates":     result.OutputEstimates,                           // completed requests without the server's count of output tokens
		"output_contradicted":  result.Contradicted,                              // of output_estimates, those whose stream contradicts the server's count
		"missing_done":         orNull(result.MissingDone, result.Completed > 0), // completed requests whose stream ended without its end marker
		"pacing":               orNull(result.Pacing(), result.Pacing() != ""),   // what delayed requests, if not the trace
		"mean_chunk_tokens":    orNull(result.TokensPerChunk.Mean, result.TokensPerChunk.Count > 0),
		"p99_chunk_tokens":     orNull(result.TokensPerChunk.Quantile(0.99), result.TokensPerChunk.Count > 0),
		"reasoning_answers":    orNull(result.Reasoned, result.Completed > 0),               // completed requests whose response began with reasoning
		"reasoning_only":       orNull(result.ReasoningOnly, result.Reasoned > 0),           // of reasoning_answers, those without visible text
		"prompts_estimated":    l.Estimated,                                                 // by the trace, so not compared with the server's count
		"prompts_off":          orNull(l.PromptsOff, l.Prompts > 0),                         // prompts that differ by more than 1 % from the trace
		"answers_shorter":      orNull(l.AnswersShorter, l.Answers > 0),                     // responses shorter than in the trace
		"answers_longer":       orNull(l.AnswersLonger, l.Answers > 0),                      // responses longer than max_tokens
		"merged_chunks":        orNull(int(result.Merges.Merged), result.Merges.Chunks > 0), // token chunks that were read together with the next one
		"p99_merged_ms":        orNull(result.Merges.P99MS, result.Merges.Chunks > 0),
		"max_merged_ms":        orNull(result.Merges.MaxMS, result.Merges.Chunks > 0),
		"median_read_delay_ms": orNull(delay.MedianMS, delay.Reads > 0),
		"p99_read_delay_ms":    orNull(delay.P99MS, delay.Reads > 0),
		"max_read_delay_ms":    orNull(delay.MaxMS, delay.Reads > 0),
		"cache":                predictionJSON(result), // prediction of cache hits, null without one
		"server":               serverJSON(&result.Samples.Server),
		"client":               clientJSON(&result.Samples.Client),
		"window":               r.windowJSON(), // null if the whole run was measured
		"thresholds":           result.Thresholds,
		"goodput":              goodputJSON(result.Goodput),
		"gates":                gateObjects(r.Judgements()),
		"models":               r.modelsJSON(),                   // null unless requests name several models
		"sessions":             runSessionsJSON(result.Sessions), // null if the trace has no sessions
		"parts":                partsJSON(result),                // null unless several processes drove the run
		"turns":                turnsJSON(result),                // how prompts relate to those before them, null without sessions or block ids
	}
}

// abandonedJSON returns null if no request was abandoned.
func abandonedJSON(r *measure.Result) any {
	a := r.Abandoned
	return orNull(map[string]any{
		"requests": a.Requests, "share": measure.MustMetric("abandoned_share").Value(r), "answered": a.Answered, "tokens": a.Tokens,
		"aborted_by_server": r.Samples.Server.Aborted, "running_after": r.Samples.Server.RunningAfter,
	}, a.Requests > 0)
}

// goodputJSON returns null without objectives.
func goodputJSON(g *measure.Goodput) any {
	if g == nil {
		return nil
	}
	objectives := []object{}
	for _, o := range g.Objectives {
		objectives = append(objectives, object{{"limit_ms", o.LimitMS}, {"met", o.Met}, {"metric", o.Latency.String()}, {"share", g.Share(o.Met)}})
	}
	return map[string]any{"requests": g.Requests, "good": g.Good, "share": g.Share(g.Good), "objectives": objectives}
}

// windowJSON returns null if the whole run was measured.
func (r Run) windowJSON() any {
	w, of := r.Info.Settings.Window, r.Result
	return orNull(map[string]any{
		"warmup_s": w.WarmupSeconds, "cooldown_s": w.CooldownSeconds,
		"from_s": of.Window.From.Seconds(), "to_s": of.Window.To.Seconds(), "ended": of.Ended,
	}, r.windowed())
}

// predictionJSON returns null without a prediction.
func predictionJSON(r *measure.Result) any {
	p := &r.Cache.Prediction
	if p.Requests == 0 {
		return nil
	}
	causes := map[string]any{}
	for _, cause := range measure.Causes {
		d := p.Causes[cause]
		of := map[string]any{"requests": d.Requests, "tokens": d.Tokens}
		if d.Requests > 0 {
			of["cause"] = attribution(cause, r)
		}
		causes[string(cause)] = of
	}
	keys := map[string]any{
		"requests": p.Requests, "equal_requests": p.Equal, "causes": causes,
		"server_block_size": orNull(p.BlockSize, p.BlockSize > 0), "max_server_block_size": orNull(p.MaxBlockSize, p.BlockSize == 0), "template_tokens": p.TemplateTokens,
		"shared_tokens": p.Shared, "predicted_tokens": p.Predicted, "measured_tokens": p.Measured,
	}
	if p.TracePredicted.Set { // prompts have real responses
		keys["live"] = map[string]any{
			"trace_predicted_tokens": p.TracePredicted, // predicted for the same requests with responses from the trace
			"from_answers":           p.FromAnswers,    // of measured_tokens, those that would have been computed again then
			"assumed_block_size":     orNull(p.AssumedBlock, p.AssumedBlock > 0),
		}
	}
	return keys
}

// serverJSON returns null if the server's metrics were not scraped.
func serverJSON(s *measure.ServerMetrics) any {
	keys := map[string]any{
		"engine": s.Engine, "engines": s.Engines, "answers": s.Scrapes, "failures": s.Failures,
		"queried_tokens": s.QueriedTokens, "hit_tokens": s.HitTokens, "preemptions": s.Preemptions, "aborted": s.Aborted,
		"block_size": orNull(s.BlockSize, s.BlockSize > 0), "capacity_tokens": orNull(s.CapacityTokens, s.CapacityTokens > 0),
	}
	for name, d := range map[string]stats.Sample{
		"kv_use": s.KVUse, "kv_use_of_fullest": s.KVUseMax, "running": s.Running, "waiting": s.Waiting, "hit_rate": s.HitRate,
	} {
		keys["mean_"+name], keys["max_"+name] = orNull(d.Mean, d.Count > 0), orNull(d.Max, d.Count > 0)
	}
	return orNull(keys, s.Scrapes+s.Failures > 0)
}

// clientJSON returns null if the client was not sampled.
func clientJSON(c *measure.ClientLoad) any {
	return orNull(map[string]any{
		"samples": c.Samples, "mean_cpu": c.CPU, "max_machine_share": c.MachineShare.Max,
		"mean_machine_busy": orNull(c.MachineBusy.Mean, c.MachineBusy.Max > 0), "max_machine_busy": orNull(c.MachineBusy.Max, c.MachineBusy.Max > 0),
		"gc_pauses": c.GCPauses, "max_gc_pause_ms": c.GCPauseMaxMS,
		"median_sched_p99_ms": c.SchedMS.Quantile(0.5), "max_sched_p99_ms": c.SchedMS.Max, "max_rss_bytes": c.RSSBytes,
	}, c.Samples > 0)
}

// AIPerf writes records in the format of AIPerf's profile_export.jsonl, one line per
// request sent. Times are in nanoseconds since the Unix epoch. request_latency is E2EL,
// time_to_first_output_token TTFVT, inter_token_latency TPOT, inter_chunk_latency the gaps,
// and output_token_count excludes reasoning. The format has neither verdict nor notes; the
// worker id of a simulated run says that it is one.
func AIPerf(w io.Writer, info runfile.Run, records iter.Seq2[replay.Record, error]) error {
	out := bufio.NewWriterSize(w, 64<<10)
	turns := map[string]int{}
	for rec, err := range records {
		if err != nil {
			return err
		}
		if !rec.Sent.Set {
			continue
		}
		turn := 0
		if rec.SessionID != "" {
			turn = turns[rec.SessionID]
			turns[rec.SessionID]++
		}
		line, err := jsonscan.Strict.Marshal(aiperfRecord(&info, &rec, turn))
		if err != nil {
			return fmt.Errorf("writing row %d: %w", rec.Row+1, err)
		}
		out.Write(printable(line))
		out.WriteByte('\n')
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	return nil
}

type aiperfValue struct {
	Value any    `json:"value"`
	Unit  string `json:"unit"`
}

func aiperfRecord(info *runfile.Run, rec *replay.Record, turn int) map[string]any {
	wall := func(at time.Duration) int64 { return info.Started.Add(at).UnixNano() }
	id := fmt.Sprintf("row-%d", rec.Row)
	conversation := cmp.Or(rec.SessionID, id)
	worker := "moontide"
	if info.Target.Simulated {
		worker = "moontide-simulated"
	}
	cancelled := rec.Class == replay.Canceled || rec.Class == replay.Abandoned
	line := map[string]any{"error": nil, "metadata": map[string]any{
		"session_num": rec.Row, "x_request_id": id, "x_correlation_id": conversation, "conversation_id": conversation, "turn_index": turn,
		"request_start_ns": wall(rec.Sent.Value), "request_ack_ns": orNull(wall(rec.First.Value), rec.First.Set), "request_end_ns": wall(rec.Done),
		"worker_id": worker, "record_processor_id": "moontide", "benchmark_phase": "profiling",
		"was_cancelled": cancelled, "cancellation_time_ns": orNull(wall(rec.Done), cancelled),
	}}
	if rec.Class != replay.OK {
		line["metrics"] = map[string]aiperfValue{"error_isl": {inputTokens(rec), "tokens"}}
		line["error"] = map[string]any{"code": rec.Status, "type": string(rec.Class), "message": rec.Error}
		return line
	}
	line["metrics"] = aiperfMetrics(rec)
	return line
}

func inputTokens(rec *replay.Record) int {
	if rec.Counts.Input.Set {
		return rec.Counts.Input.Value
	}
	return rec.InputLength
}

func aiperfMetrics(rec *replay.Record) map[string]aiperfValue {
	output, _ := rec.OutputTokens()
	values := map[string]aiperfValue{
		"input_sequence_length":  {inputTokens(rec), "tokens"},
		"output_sequence_length": {output, "tokens"},
		"output_token_count":     {output, "tokens"},
	}
	if n := rec.Counts.Reasoning; n.Set {
		reasoning := min(n.Value, output)
		values["reasoning_token_count"] = aiperfValue{reasoning, "tokens"}
		values["output_token_count"] = aiperfValue{output - reasoning, "tokens"}
	}
	for name, l := range map[string]measure.Latency{
		"time_to_first_token": measure.TTFT, "time_to_first_output_token": measure.TTFVT, "time_to_second_token": measure.TTST,
		"inter_token_latency": measure.TPOT, "request_latency": measure.E2EL,
	} {
		if ms := l.Of(rec); ms.Set {
			values[name] = aiperfValue{json.Number(stats.Plain(ms.Value)), "ms"}
		}
	}
	if tpot := measure.TPOT.Of(rec); tpot.Set && tpot.Value > 0 {
		values["output_token_throughput_per_user"] = aiperfValue{json.Number(stats.Plain(1000 / tpot.Value)), "tokens/sec/user"}
	}
	if len(rec.Gaps) > 0 {
		gaps := make([]json.Number, len(rec.Gaps))
		for i, gap := range rec.Gaps {
			gaps[i] = json.Number(stats.Plain(trace.MS(gap)))
		}
		values["inter_chunk_latency"] = aiperfValue{gaps, "ms"}
	}
	return values
}
