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
		{"Warm-up Time", ofWindow(1, func(r Run) float64 { return r.Info.Settings.Window.WarmupSeconds })},
		{"Cool-down Time", ofWindow(1, func(r Run) float64 { return r.Info.Settings.Window.CooldownSeconds })},
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
	maxConcurrency = blockLine{"Maximum request concurrency", func(r Run) string { return countOr(r.Info.Settings.MaxConcurrency) }}
	configuredRate = blockLine{"Request rate configured (RPS)", func(r Run) string {
		if rate := r.Info.Settings.DrawnRate(); rate > 0 {
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

// plainMetric formats a value for the block and side-by-side tables.
func plainMetric(m measure.Metric, r *measure.Result) string { return plainValue(m, m.Value(r)) }

// listing collects the lines of a "Serving Benchmark Result" block.
type listing struct {
	lines []string
	width int // of the keys; values follow after a space
}

// listingColumn is the width of the keys in vLLM's block.
const listingColumn = 40

func (l *listing) rule(title, fill string) {
	const width = 50
	left := max(0, width-len(title)) / 2
	l.lines = append(l.lines, strings.Repeat(fill, left)+title+strings.Repeat(fill, max(0, width-len(title)-left)))
}

func (l *listing) add(key, value string) {
	l.lines = append(l.lines, fmt.Sprintf("%-*s %s", l.width, key+":", value))
}

// addLines adds the lines that have a value.
func (l *listing) addLines(r Run, lines []blockLine) {
	for _, line := range lines {
		if value := line.value(r); value != "" {
			l.add(line.label, value)
		}
	}
}

// latency adds the statistics of a latency under a title, with its label.
func (l *listing) latency(r Run, of measure.Latency, title, label string) {
	l.rule(title, "-")
	for _, s := range r.View.statistics() {
		m := of.Metric(s)
		l.add(s.Label()+" "+label+" (ms)", plainMetric(m, r.Result))
	}
}

// own is vLLM's block with all metrics of moontide.
var own = slices.Concat([]blockLine{
	ofMetric("completed"), ofMetric("failed"),
	ofMetric("abandoned").onlyIf(func(r Run) bool { return r.Result.Abandoned.Requests > 0 }),
	{"Requests not sent", func(r Run) string { return countOr(r.Info.NotSent) }},
	maxConcurrency, configuredRate,
	{"Warm-up time (s)", ofWindow(2, func(r Run) float64 { return r.Info.Settings.Window.WarmupSeconds })},
	{"Cool-down time (s)", ofWindow(2, func(r Run) float64 { return r.Info.Settings.Window.CooldownSeconds })},
	ofMetric("duration"), ofMetric("total_input_tokens"), ofMetric("total_output_tokens"),
	ofMetric("cached_tokens").onlyIf(func(r Run) bool { return r.Result.Cached.Set }),
}, furtherLines(), []blockLine{
	blockLine{"Mean tokens per chunk", func(r Run) string { return doc.Fixed(r.Result.TokensPerChunk.Mean, 2) }}.onlyIf(Run.multiToken),
	blockLine{"P99 tokens per chunk", func(r Run) string { return doc.Fixed(r.Result.TokensPerChunk.Quantile(0.99), 2) }}.onlyIf(Run.multiToken),
	ofMetric("request_throughput"), ofMetric("request_goodput"),
	ofMetric("output_throughput"), ofMetric("max_output_tokens_per_s"), peakConcurrency, ofMetric("total_token_throughput"),
})

// furtherLines returns lines of the metrics beside those of the block, if a run has any.
func furtherLines() (lines []blockLine) {
	for _, m := range measure.Metrics() {
		if m.Further {
			lines = append(lines, ofMetric(m.Key).onlyIf(func(r Run) bool { return m.Value(r.Result).Value > 0 }))
		}
	}
	return lines
}

// listing returns the block of the run.
func (r Run) listing() []string {
	l := &listing{width: listingColumn}
	l.rule(" Serving Benchmark Result ", "=")
	l.addLines(r, own)
	shown := Runs{r}.latencies()
	for _, of := range shown {
		l.latency(r, of, of.Title(), of.Label())
		if of == measure.ITL && r.multiToken() && !slices.Contains(shown, measure.ITLPerToken) {
			l.latency(r, measure.ITLPerToken, measure.ITLPerToken.Title(), measure.ITLPerToken.Label())
		}
	}
	scheduled := r.informative(measure.ScheduleLatencies)
	if len(scheduled) > 0 {
		l.rule("From the Schedule", "-")
	}
	for _, of := range scheduled {
		for _, s := range r.View.statistics() {
			l.add(of.Metric(s).Heading(), plainMetric(of.Metric(s), r.Result))
		}
	}
	l.rule("", "=")
	return l.lines
}

// multiToken reports whether some chunks do not have one token: ITL is not the time between
// tokens then.
func (r Run) multiToken() bool {
	d := r.Result.TokensPerChunk
	return d.Count > 0 && (d.Min != 1 || d.Max != 1)
}
