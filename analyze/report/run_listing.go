package report

import (
	"fmt"
	"slices"
	"strings"

	"moontide/analyze/measure"
	"moontide/analyze/report/doc"
)

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
	{"Warm-up time (s)", ofWindow(2, func(r Run) float64 { return r.Info.Window.WarmupSeconds })},
	{"Cool-down time (s)", ofWindow(2, func(r Run) float64 { return r.Info.Window.CooldownSeconds })},
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
