package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"moontide/analyze/measure"
	"moontide/analyze/report/doc"
	"moontide/trace"
)

// Block is the layout of a tool's "Serving Benchmark Result": its lines and labels. Verdict
// and notes follow the block.
type Block struct {
	title     string
	width     int // of the labels
	lines     []blockLine
	latencies []blockLatency
	itl       measure.Latency // the ITL of the tool
}

// blockLine is a count or rate of a block. A line without a value is omitted.
type blockLine struct {
	label string
	value func(r Run) string
}

type blockLatency struct {
	of           measure.Latency
	title, label string
	optional     bool // only if requested
}

// VLLM is the block of vLLM's benchmark.
var VLLM = Block{
	title: " Serving Benchmark Result ", width: listingColumn, itl: measure.ITL,
	lines: []blockLine{
		ofMetric("completed"), ofMetric("failed"), maxConcurrency, configuredRate, ofMetric("duration"),
		ofMetric("total_input_tokens"), ofMetric("total_output_tokens"), ofMetric("request_throughput"), ofMetric("request_goodput"),
		ofMetric("output_throughput"), ofMetric("max_output_tokens_per_s"), peakConcurrency, ofMetric("total_token_throughput"),
	},
	latencies: []blockLatency{
		titled(measure.TTFT), titled(measure.TPOT), titled(measure.ITL),
		{of: measure.E2EL, title: measure.E2EL.Title(), label: measure.E2EL.Label(), optional: true},
		{of: measure.QueueTime, title: "Client-side Queueing", label: "Client Queue Time", optional: true},
		{of: measure.E2ELFromSchedule, title: "Queue-inclusive End-to-end Latency", label: "E2EL incl. Client Queue", optional: true},
	},
}

// Dynamo is the block of Dynamo's benchmark recipes. Its ITL is that of AIPerf, one value
// per request.
var Dynamo = Block{
	title: " Serving Benchmark Result ", width: listingColumn, itl: measure.TPOT,
	lines: []blockLine{
		ofMetric("request_throughput"), ofMetric("request_goodput"), ofMetric("output_throughput"),
		ofMetric("total_token_throughput").named("Total Token throughput (tok/s)"),
	},
	latencies: []blockLatency{titled(measure.TTFT), titled(measure.TPOT), titled(measure.ITL), titled(measure.E2EL)},
}

// Moreh is the block of Moreh's saturation runs, with the number of client processes and a
// window of the run.
var Moreh = Block{
	title: "Serving Benchmark Result", itl: measure.ITL,
	lines: []blockLine{
		{"Number of worker processes", func(r Run) string { return strconv.Itoa(max(len(r.Result.Parts), 1)) }},
		ofMetric("completed"), maxConcurrency, configuredRate,
		{"Warm-up Time", ofWindow(1, func(r Run) float64 { return r.Info.Window.WarmupSeconds })},
		{"Cool-down Time", ofWindow(1, func(r Run) float64 { return r.Info.Window.CooldownSeconds })},
		ofMetric("duration"), ofMetric("total_input_tokens"), ofMetric("total_output_tokens"), ofMetric("request_goodput"),
		ofMetric("output_throughput"), ofMetric("total_token_throughput").named("Total Token throughput (tok/s)"),
	},
	latencies: []blockLatency{
		titled(measure.TTFT), {of: measure.TPOT, title: measure.TPOT.Title(), label: measure.TPOT.Label(), optional: true}, titled(measure.ITL),
		{of: measure.E2EL, title: measure.E2EL.Title(), label: measure.E2EL.Label(), optional: true},
	},
}

func ofMetric(key string) blockLine {
	m := measure.MustMetric(key)
	return blockLine{m.Heading(), func(r Run) string {
		if m.Goodput && r.Result.Goodput == nil {
			return ""
		}
		return plainMetric(m, r.Result)
	}}
}

func (l blockLine) named(label string) blockLine { return blockLine{label, l.value} }

func (l blockLine) onlyIf(known func(r Run) bool) blockLine {
	return blockLine{l.label, func(r Run) string {
		if !known(r) {
			return ""
		}
		return l.value(r)
	}}
}

// countOr formats a count other than 0.
func countOr(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func titled(l measure.Latency) blockLatency {
	return blockLatency{of: l, title: l.Title(), label: l.Label()}
}

var (
	maxConcurrency = blockLine{"Maximum request concurrency", func(r Run) string { return countOr(r.Info.Limits.MaxConcurrency) }}
	configuredRate = blockLine{"Request rate configured (RPS)", func(r Run) string {
		if rate := r.Info.Trace.Rate; rate > 0 {
			return twoDecimals(trace.Some(rate))
		}
		return ""
	}}
	peakConcurrency = blockLine{"Peak concurrent requests", func(r Run) string {
		return twoDecimals(trace.Some(float64(r.Result.PeakConcurrency)))
	}}
)

func ofWindow(decimals int, seconds func(r Run) float64) func(r Run) string {
	return func(r Run) string {
		if r.Result.Window == (measure.Span{}) {
			return ""
		}
		return strconv.FormatFloat(seconds(r), 'f', decimals, 64)
	}
}

// Check returns an error if a view selects latencies that the block does not have.
func (b Block) Check(v View) error {
	var known []string
	for _, l := range b.latencies {
		known = append(known, l.of.String())
	}
	for _, l := range v.Latencies {
		if !slices.Contains(known, l.String()) {
			return fmt.Errorf("the block has no %s: want %s", l, strings.Join(known, ", "))
		}
	}
	return nil
}

// shown returns the latencies of the block, in its order.
func (b Block) shown(v View) (all []blockLatency) {
	for _, l := range b.latencies {
		if v.Latencies == nil && !l.optional || slices.Contains(v.Latencies, l.of) {
			all = append(all, l)
		}
	}
	return all
}

// listing returns the lines of the block, and a note on its ITL.
func (b Block) listing(r Run) (lines []string, notes []doc.Note) {
	out := &listing{width: b.width}
	out.rule(b.title, "=")
	out.addLines(r, b.lines)
	for _, l := range b.shown(r.View) {
		of := l.of
		if of == measure.ITL {
			of = b.itl
			notes = append(notes, doc.Note{Kind: "ITL", Text: itlNote(of)})
		}
		out.latency(r, of, l.title, l.label)
	}
	out.rule("", "=")
	return out.lines, notes
}

func itlNote(l measure.Latency) string {
	if l == measure.TPOT {
		return "one value per request, equal to its TPOT."
	}
	return "the gaps between token chunks of all requests."
}

// Block contains the result block of another tool, the notes and the verdict.
func (runs Runs) Block(b Block) *doc.Document {
	return runs.document(func(r Run, d *doc.Document) {
		lines, notes := b.listing(r)
		d.Section("").Blocks = []doc.Block{{Listing: lines}}
		d.Notes = notes
	})
}
