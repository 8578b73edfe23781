package report

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"moontide/analyze/dist"
	"moontide/analyze/serving"
	"moontide/replay"
	"moontide/trace"
)

// ServingText writes the "Serving Benchmark Result" block of a run, line for
// line as the field knows it, then what that block has no line for: latencies
// from the schedule, lag, errors, and the verdict with its evidence. No control
// characters of a server's answer get into it. The only errors are those of w.
func ServingText(w io.Writer, run replay.Run, r *serving.Result) error {
	var b servingBlock
	b.rule(" Serving Benchmark Result ", '=')
	b.counts(run, r)
	b.latency("Time to First Token", "TTFT", r.TTFT)
	b.latency("Time per Output Token (excl. 1st token)", "TPOT", r.TPOT)
	b.latency("Inter-token Latency", "ITL", r.ITL)
	b.latency("End-to-end Latency", "E2EL", r.E2EL)
	b.rule("From the Schedule", '-')
	b.stat("TTFT from schedule", r.TTFTFromSchedule)
	b.stat("E2EL from schedule", r.E2ELFromSchedule)
	b.stat("schedule lag", r.ScheduleLag)
	b.stat("client lag", r.ClientLag)
	b.stat("held", r.Held)
	b.rule("", '=')
	b.errors(r)
	b.WriteString("\n")
	b.estimates(r)
	b.run(run)
	b.verdict(r.Verdict)
	return write(w, b.Bytes())
}

// servingBlock is 50 columns wide; values begin in column 41, from 0.
type servingBlock struct{ bytes.Buffer }

func (b *servingBlock) rule(title string, fill rune) {
	const width = 50
	left := (width - len(title)) / 2
	fmt.Fprintf(b, "%s%s%s\n", strings.Repeat(string(fill), left), title, strings.Repeat(string(fill), width-len(title)-left))
}

func (b *servingBlock) line(label, value string) { fmt.Fprintf(b, "%-40s %s\n", label+":", value) }

func (b *servingBlock) int(label string, n int) { b.line(label, strconv.Itoa(n)) }

func (b *servingBlock) float(label string, x float64) {
	b.line(label, strconv.FormatFloat(x, 'f', 2, 64))
}

func (b *servingBlock) optional(label string, x trace.Opt[float64]) {
	if !x.Set {
		b.line(label, absent)
		return
	}
	b.float(label, x.Value)
}

func (b *servingBlock) counts(run replay.Run, r *serving.Result) {
	b.int("Successful requests", r.Completed)
	b.int("Failed requests", r.Failed)
	if run.NotSent > 0 {
		b.int("Requests not sent", run.NotSent)
	}
	if run.Limits.MaxConcurrency > 0 {
		b.int("Maximum request concurrency", run.Limits.MaxConcurrency)
	}
	b.float("Benchmark duration (s)", r.Duration.Seconds())
	b.int("Total input tokens", r.Input)
	b.int("Total generated tokens", r.Output)
	if r.Cached.Set {
		b.int("Total cached tokens", r.Cached.Value)
	}
	b.optional("Request throughput (req/s)", r.RequestRate)
	b.optional("Output token throughput (tok/s)", r.OutputRate)
	b.float("Peak output token throughput (tok/s)", r.PeakOutputRate)
	b.int("Peak concurrent requests", r.PeakConcurrency)
	b.optional("Total token throughput (tok/s)", r.TotalRate)
}

func (b *servingBlock) latency(title, name string, d dist.Distribution) {
	b.rule(title, '-')
	b.stat(name, d)
}

func (b *servingBlock) stat(name string, d dist.Distribution) {
	for _, s := range []struct {
		label string
		value float64
	}{{"Mean", d.Mean}, {"Median", d.Quantile(0.5)}, {"P99", d.Quantile(0.99)}} {
		b.optional(s.label+" "+name+" (ms)", trace.Opt[float64]{Value: s.value, Set: d.Count > 0})
	}
}

func (b *servingBlock) errors(r *serving.Result) {
	if r.Failed == 0 {
		return
	}
	b.WriteString("\nFailed requests by class:\n")
	for _, class := range slices.Sorted(maps.Keys(r.Errors)) {
		line := fmt.Sprintf("  %-10s %6d", oneLine(string(class)), r.Errors[class])
		if example := oneLine(r.Examples[class]); example != "" {
			line += "  e.g. " + example
		}
		b.WriteString(line + "\n")
	}
}

// estimates says which token counts are not the server's.
func (b *servingBlock) estimates(r *serving.Result) {
	if r.InputEstimates > 0 {
		fmt.Fprintf(b, "Estimated: the input tokens of %d requests are the trace's, for the server did not count them.\n", r.InputEstimates)
	}
	if r.OutputEstimates > 0 {
		fmt.Fprintf(b, "Estimated: the generated tokens of %d requests are token chunks, for the server did not count them.\n", r.OutputEstimates)
	}
}

func (b *servingBlock) run(run replay.Run) {
	if run.Target.Simulated {
		b.WriteString("Simulated: these are the figures of the embedded endpoint, not of a model.\n")
	}
	switch {
	case run.Ended.IsZero():
		b.WriteString("The run did not end: it was killed, or is still going. Rows not sent are unknown.\n")
	case run.Stopped:
		fmt.Fprintf(b, "The run was stopped early: %d of %d rows were not sent.\n", run.NotSent, run.Rows)
	case run.NotSent > 0:
		fmt.Fprintf(b, "%d later turns were not sent, because an earlier turn of their session failed.\n", run.NotSent)
	}
	if run.Failure != "" {
		fmt.Fprintf(b, "The run failed: %s\n", oneLine(run.Failure))
	}
	for _, note := range run.Notes {
		fmt.Fprintf(b, "Note: %s.\n", oneLine(note))
	}
}

func (b *servingBlock) verdict(v serving.Verdict) {
	fmt.Fprintf(b, "Verdict: %s\n", v.Level)
	for _, e := range v.Evidence {
		fmt.Fprintf(b, "  %-8s %s\n", strings.ToLower(e.Level.String()), e.Text)
	}
}
