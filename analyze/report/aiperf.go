package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"time"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/jsonscan"
)

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
			values[name] = aiperfValue{number(ms.Value), "ms"}
		}
	}
	if tpot := measure.TPOT.Of(rec); tpot.Set && tpot.Value > 0 {
		values["output_token_throughput_per_user"] = aiperfValue{number(1000 / tpot.Value), "tokens/sec/user"}
	}
	if len(rec.Gaps) > 0 {
		gaps := make([]json.Number, len(rec.Gaps))
		for i, gap := range rec.Gaps {
			gaps[i] = number(trace.MS(gap))
		}
		values["inter_chunk_latency"] = aiperfValue{gaps, "ms"}
	}
	return values
}
