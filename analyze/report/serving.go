package report

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"moontide/analyze/run"
	"moontide/replay/runfile"
	"moontide/trace"
)

// ServingText writes a run as [ServingRun.Text] does, with the usual statistics.
func ServingText(w io.Writer, info runfile.Run, r *run.Result) error {
	return ServingRun{Run: info, Result: r}.Text(w)
}

// Text writes the "Serving Benchmark Result" block of a run, line for line as
// the field knows it, then what that block has no line for: latencies from the
// schedule, lag, errors, and the verdict with its evidence. No control characters
// of a server's answer get into it. The only errors are those of w.
func (s ServingRun) Text(w io.Writer) error {
	info, r := s.Run, s.Result
	var b servingBlock
	b.block(s, true)
	b.rule("From the Schedule", '-')
	for _, m := range run.ScheduleLatencies {
		b.stats(m, r, s.View)
	}
	b.rule("", '=')
	b.errors(r)
	b.goodput(r.Goodput)
	b.WriteString("\n")
	b.prediction(r)
	b.server(&r.Observed.Server)
	b.estimates(r)
	b.window(r)
	b.run(info)
	b.calibrated(info, r)
	b.verdict(r.Verdict)
	return write(w, b.Bytes())
}

// VLLM writes the block alone, with no line that vLLM's benchmark does not print,
// and the verdict under it.
func (s ServingRun) VLLM(w io.Writer) error {
	var b servingBlock
	b.block(s, false)
	b.rule("", '=')
	b.verdict(s.Result.Verdict)
	return write(w, b.Bytes())
}

// Text writes the runs one after another, each under its name if there are
// several.
func (runs ServingRuns) Text(w io.Writer) error { return runs.each(w, ServingRun.Text) }

// VLLM writes the blocks of the runs as [ServingRun.VLLM] does.
func (runs ServingRuns) VLLM(w io.Writer) error { return runs.each(w, ServingRun.VLLM) }

func (runs ServingRuns) each(w io.Writer, show func(ServingRun, io.Writer) error) error {
	for i, info := range runs {
		if len(runs) > 1 {
			gap := "\n\n"
			if i == 0 {
				gap = ""
			}
			if err := write(w, []byte(gap+"Run: "+oneLine(info.Name)+"\n")); err != nil {
				return err
			}
		}
		if err := show(info, w); err != nil {
			return err
		}
	}
	return nil
}

// block is what vLLM's benchmark prints, with more counts or without.
func (b *servingBlock) block(s ServingRun, more bool) {
	b.rule(" Serving Benchmark Result ", '=')
	b.counts(s.Run, s.Result, more)
	for _, m := range s.View.metrics() {
		b.rule(m.Title(), '-')
		b.stats(m, s.Result, s.View)
	}
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

func (b *servingBlock) counts(info runfile.Run, r *run.Result, more bool) {
	b.int("Successful requests", r.Completed)
	b.int("Failed requests", r.Failed)
	if more && info.NotSent > 0 {
		b.int("Requests not sent", info.NotSent)
	}
	if info.Limits.MaxConcurrency > 0 {
		b.int("Maximum request concurrency", info.Limits.MaxConcurrency)
	}
	if info.Trace.Rate > 0 {
		b.float("Request rate configured (RPS)", info.Trace.Rate)
	}
	if w := info.Window; r.Window != (run.Span{}) {
		b.float("Warm-up time (s)", w.WarmupSeconds)
		b.float("Cool-down time (s)", w.CooldownSeconds)
	}
	b.float("Benchmark duration (s)", r.Duration.Seconds())
	b.int("Total input tokens", r.Input)
	b.int("Total generated tokens", r.Output)
	if more && r.Cached.Set {
		b.int("Total cached tokens", r.Cached.Value)
	}
	b.optional("Request throughput (req/s)", r.RequestRate)
	if r.Goodput != nil {
		b.optional("Request goodput (req/s)", r.Goodput.Rate)
	}
	b.optional("Output token throughput (tok/s)", r.OutputRate)
	b.float("Peak output token throughput (tok/s)", r.PeakOutputRate)
	b.float("Peak concurrent requests", float64(r.PeakConcurrency)) // as vLLM prints it
	b.optional("Total token throughput (tok/s)", r.TotalRate)
}

// stats are the statistics of a metric, a line each.
func (b *servingBlock) stats(m run.Latency, r *run.Result, v View) {
	for _, stat := range v.statistics() {
		metric := m.Metric(stat)
		b.optional(metric.Heading(), metric.Value(r))
	}
}

// goodput says how many requests met each objective.
func (b *servingBlock) goodput(g *run.Goodput) {
	if g == nil {
		return
	}
	b.WriteString("\nRequests that kept to their objectives:\n")
	line := func(name string, n int) {
		share := absent
		if part := g.Share(n); part.Set {
			share = percentage(part.Value)
		}
		fmt.Fprintf(b, "  %-30s %12s  %d of %d\n", name, share, n, g.Requests)
	}
	for _, o := range g.Objectives {
		line(fmt.Sprintf("%s at most %s ms", o.Latency.Label(), plainNumber(o.LimitMS)), o.Met)
	}
	line("all of them", g.Good)
}

// plainNumber has as many decimals as it takes.
func plainNumber(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func (b *servingBlock) errors(r *run.Result) {
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
func (b *servingBlock) estimates(r *run.Result) {
	if r.GapsNotKept > 0 {
		fmt.Fprintf(b, "Counted: ITL is of a histogram to %.1f %%, with %d of %d gaps, for the run kept no chunk times; tokens between the first and the last count as evenly spaced.\n",
			100*runfile.GapResolution, r.GapsCounted, r.GapsNotKept)
	}
	if r.InputEstimates > 0 {
		fmt.Fprintf(b, "Estimated: the input tokens of %d requests are the trace's, for the server did not count them.\n", r.InputEstimates)
	}
	if r.OutputEstimates > 0 {
		fmt.Fprintf(b, "Estimated: the generated tokens of %d requests are token chunks, for the server did not count them.\n", r.OutputEstimates)
	}
}

func (b *servingBlock) run(info runfile.Run) {
	switch {
	case info.Target.Virtual:
		b.WriteString("Simulated: these are the figures of modelled engines in virtual time, not of a server.\n")
	case info.Target.Simulated:
		b.WriteString("Simulated: these are the figures of the embedded endpoint, not of a model.\n")
	}
	switch {
	case info.Ended.IsZero() && info.Sent == 0:
		b.WriteString("The run did not end: it was killed, or is still going. Rows not sent are unknown.\n")
	case info.Ended.IsZero():
		fmt.Fprintf(b, "The run did not end: it was killed, or is still going. %d of %d rows were sent; those that are not in the record were in flight.\n", info.Sent, info.Rows)
	case info.Stopped:
		fmt.Fprintf(b, "The run was stopped early: %d of %d rows were not sent.\n", info.NotSent, info.Rows)
	case info.TimeUp:
		fmt.Fprintf(b, "Sending ended after %g s, as asked for: %d of %d rows were not sent.\n", info.Limits.DurationSeconds, info.NotSent, info.Rows)
	case info.NotSent > 0:
		fmt.Fprintf(b, "%d later turns were not sent, because an earlier turn of their session failed.\n", info.NotSent)
	}
	if info.Failure != "" {
		fmt.Fprintf(b, "The run failed: %s\n", oneLine(info.Failure))
	}
	for _, note := range info.Notes {
		fmt.Fprintf(b, "Note: %s.\n", oneLine(note))
	}
}

func (b *servingBlock) verdict(v run.Verdict) {
	fmt.Fprintf(b, "Verdict: %s\n", v.Level)
	for _, e := range v.Evidence {
		fmt.Fprintf(b, "  %-8s %s\n", strings.ToLower(e.Level.String()), e.Text)
	}
}
