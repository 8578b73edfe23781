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

// Block is the layout of a tool's "Serving Benchmark Result": its lines and latencies. Verdict
// and notes follow the block.
type Block struct {
	title     string
	width     int      // of the labels
	lines     []string // keys of metrics and of blockLines
	latencies []measure.Latency
	optional  []measure.Latency // of latencies, those that are shown if requested
	itl       measure.Latency   // the ITL of the tool
}

// blockTitle and blockWidth are those of vLLM's block.
const (
	blockTitle = " Serving Benchmark Result "
	blockWidth = 40
)

// VLLM is the block of vLLM's benchmark.
var VLLM = Block{
	title: blockTitle, width: blockWidth, itl: measure.ITL,
	lines: strings.Fields("completed failed max_concurrency request_rate duration total_input_tokens total_output_tokens request_throughput" +
		" request_goodput output_throughput max_output_tokens_per_s max_concurrent_requests total_token_throughput"),
	latencies: []measure.Latency{measure.TTFT, measure.TPOT, measure.ITL, measure.E2EL, measure.QueueTime, measure.E2ELFromSchedule},
	optional:  []measure.Latency{measure.E2EL, measure.QueueTime, measure.E2ELFromSchedule},
}

// Dynamo is the block of Dynamo's benchmark recipes. Its ITL is that of AIPerf, one value
// per request.
var Dynamo = Block{
	title: blockTitle, width: blockWidth, itl: measure.TPOT,
	lines:     strings.Fields("request_throughput request_goodput output_throughput total_throughput"),
	latencies: []measure.Latency{measure.TTFT, measure.TPOT, measure.ITL, measure.E2EL},
}

// Moreh is the block of Moreh's saturation runs, with the number of client processes and a
// window of the run.
var Moreh = Block{
	title: strings.TrimSpace(blockTitle), itl: measure.ITL,
	lines: strings.Fields("processes completed max_concurrency request_rate warmup cooldown duration total_input_tokens total_output_tokens" +
		" request_goodput output_throughput total_throughput"),
	latencies: []measure.Latency{measure.TTFT, measure.TPOT, measure.ITL, measure.E2EL},
	optional:  []measure.Latency{measure.TPOT, measure.E2EL},
}

// ownLines are those of vLLM's block and of all metrics of moontide.
var ownLines = strings.Fields("completed failed abandoned not_sent max_concurrency request_rate warmup_s cooldown_s duration total_input_tokens" +
	" total_output_tokens cached_tokens" + extraMetrics() + " mean_chunk_tokens p99_chunk_tokens request_throughput request_goodput" +
	" output_throughput max_output_tokens_per_s max_concurrent_requests total_token_throughput")

// extraMetrics returns the keys of metrics beside those of the block.
func extraMetrics() (keys string) {
	for _, m := range measure.Metrics() {
		if m.Extra {
			keys += " " + m.Key
		}
	}
	return keys
}

// blockLine is a count or rate of a block. A line without a value is omitted.
type blockLine struct {
	label string
	value func(r Run) string
}

// blockLines holds the lines that differ from those of metrics, by key.
var blockLines = map[string]blockLine{
	"processes":               {"Number of worker processes", func(r Run) string { return strconv.Itoa(max(len(r.Result.Parts), 1)) }},
	"abandoned":               {"Abandoned requests", func(r Run) string { return countOr(r.Result.Abandoned.Requests) }},
	"not_sent":                {"Requests not sent", func(r Run) string { return countOr(r.Info.NotSent) }},
	"max_concurrency":         {"Maximum request concurrency", func(r Run) string { return countOr(r.Info.Settings.MaxConcurrency) }},
	"request_rate":            {"Request rate configured (RPS)", func(r Run) string { return valueIf(r.Info.Settings.DrawnRate() > 0, r.Info.Settings.DrawnRate(), 2) }},
	"warmup":                  {"Warm-up Time", func(r Run) string { return valueIf(r.windowed(), r.Info.Settings.Window.WarmupSeconds, 1) }},
	"cooldown":                {"Cool-down Time", func(r Run) string { return valueIf(r.windowed(), r.Info.Settings.Window.CooldownSeconds, 1) }},
	"warmup_s":                {"Warm-up time (s)", func(r Run) string { return valueIf(r.windowed(), r.Info.Settings.Window.WarmupSeconds, 2) }},
	"cooldown_s":              {"Cool-down time (s)", func(r Run) string { return valueIf(r.windowed(), r.Info.Settings.Window.CooldownSeconds, 2) }},
	"cached_tokens":           {"Total cached tokens", func(r Run) string { return valueIf(r.Result.Cached.Set, float64(r.Result.Cached.Value), 0) }},
	"mean_chunk_tokens":       {"Mean tokens per chunk", func(r Run) string { return valueIf(r.multiToken(), r.Result.TokensPerChunk.Mean, 2) }},
	"p99_chunk_tokens":        {"P99 tokens per chunk", func(r Run) string { return valueIf(r.multiToken(), r.Result.TokensPerChunk.Quantile(0.99), 2) }},
	"max_concurrent_requests": {"Peak concurrent requests", func(r Run) string { return twoDecimals(trace.Some(float64(r.Result.PeakConcurrency))) }},
	"total_throughput":        {"Total Token throughput (tok/s)", func(r Run) string { return twoDecimals(r.Result.TotalRate) }},
}

// line returns the line of a key.
func line(key string) blockLine {
	if l, known := blockLines[key]; known {
		return l
	}
	m := measure.MustMetric(key)
	return blockLine{m.Heading(), func(r Run) string {
		if m.Goodput && r.Result.Goodput == nil || m.Extra && !(m.Value(r.Result).Value > 0) {
			return ""
		}
		return plainMetric(m, r.Result)
	}}
}

// countOr formats a count other than 0.
func countOr(n int) string { return valueIf(n != 0, float64(n), 0) }

func valueIf(known bool, value float64, decimals int) string {
	if !known {
		return ""
	}
	return strconv.FormatFloat(value, 'f', decimals, 64)
}

// windowed reports whether a part of the run was measured.
func (r Run) windowed() bool { return r.Result.Window != (measure.Span{}) }

// Check returns an error if a view selects latencies that the block does not have.
func (b Block) Check(v View) error {
	for _, l := range v.Latencies {
		if !slices.Contains(b.latencies, l) {
			return fmt.Errorf("the block has no %s: want %s", l, strings.Trim(strings.ReplaceAll(fmt.Sprint(b.latencies), " ", ", "), "[]"))
		}
	}
	return nil
}

// Block contains the result block of another tool, the notes and the verdict.
func (runs Runs) Block(b Block) *doc.Document {
	return runs.document(func(r Run, d *doc.Document) {
		lines, notes := b.listing(r)
		d.Section("").Blocks = []doc.Block{{Listing: lines}}
		d.Notes = notes
	})
}

// listing returns the lines of the block, and a note on its ITL.
func (b Block) listing(r Run) (lines []string, notes []doc.Note) {
	out := &listing{width: b.width}
	out.rule(b.title, "=")
	out.addLines(r, b.lines)
	for _, l := range b.latencies {
		if r.View.Latencies == nil && slices.Contains(b.optional, l) || r.View.Latencies != nil && !slices.Contains(r.View.Latencies, l) {
			continue
		}
		of, title, label := l, l.Title(), l.Label()
		switch l {
		case measure.ITL:
			of = b.itl
			notes = append(notes, doc.Note{Kind: "ITL", Text: "the gaps between token chunks of all requests."})
			if of == measure.TPOT {
				notes[len(notes)-1].Text = "one value per request, equal to its TPOT."
			}
		case measure.QueueTime:
			title, label = "Client-side Queueing", "Client Queue Time"
		case measure.E2ELFromSchedule:
			title, label = "Queue-inclusive End-to-end Latency", "E2EL incl. Client Queue"
		}
		out.latency(r, of, title, label)
	}
	out.rule("", "=")
	return out.lines, notes
}

// listing returns the block of the run.
func (r Run) listing() []string {
	l := &listing{width: blockWidth}
	l.rule(blockTitle, "=")
	l.addLines(r, ownLines)
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
		l.statistics(r, of, of.Label())
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

// listing collects the lines of a "Serving Benchmark Result" block.
type listing struct {
	lines []string
	width int // of the keys; values follow after a space
}

func (l *listing) rule(title, fill string) {
	const width = 50
	left := max(0, width-len(title)) / 2
	l.lines = append(l.lines, strings.Repeat(fill, left)+title+strings.Repeat(fill, max(0, width-len(title)-left)))
}

func (l *listing) add(key, value string) {
	l.lines = append(l.lines, fmt.Sprintf("%-*s %s", l.width, key+":", value))
}

// addLines adds the lines that have a value.
func (l *listing) addLines(r Run, keys []string) {
	for _, key := range keys {
		if line := line(key); line.value(r) != "" {
			l.add(line.label, line.value(r))
		}
	}
}

// latency adds the statistics of a latency under a title.
func (l *listing) latency(r Run, of measure.Latency, title, label string) {
	l.rule(title, "-")
	l.statistics(r, of, label)
}

func (l *listing) statistics(r Run, of measure.Latency, label string) {
	for _, s := range r.View.statistics() {
		l.add(s.Label()+" "+label+" (ms)", plainMetric(of.Metric(s), r.Result))
	}
}

// plainMetric formats a value for the block and side-by-side tables.
func plainMetric(m measure.Metric, r *measure.Result) string { return plainValue(m, m.Value(r)) }
