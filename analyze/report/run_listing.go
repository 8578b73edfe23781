package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/analyze/run"
	"moontide/trace"
)

// plainMetric formats a value for the block and side-by-side tables, without
// thousands separators.
func plainMetric(m run.Metric, r *run.Result) string {
	v := m.Value(r)
	if v.Set && m.Unit == run.Count {
		return strconv.Itoa(int(v.Value))
	}
	return twoDecimals(v)
}

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

// latency adds the statistics of a latency under a title, with its label.
func (l *listing) latency(r Run, of run.Latency, title, label string) {
	l.rule(title, "-")
	for _, s := range r.View.statistics() {
		m := of.Metric(s)
		l.add(s.Label()+" "+label+" (ms)", plainMetric(m, r.Result))
	}
}

// listing returns the "Serving Benchmark Result" block with all that moontide
// measures. See [Block] for those of other tools.
func (r Run) listing() []string {
	l := &listing{width: listingColumn}
	l.rule(" Serving Benchmark Result ", "=")
	r.addCounts(l)
	own := func(of run.Latency) { l.latency(r, of, of.Title(), of.Label()) }
	shown := Runs{r}.latencies()
	for _, of := range shown {
		own(of)
		if of == run.ITL && r.multiToken() && !slices.Contains(shown, run.ITLPerToken) {
			own(run.ITLPerToken)
		}
	}
	scheduled := r.informative(run.ScheduleLatencies)
	if len(scheduled) > 0 {
		l.rule("From the Schedule", "-")
	}
	for _, of := range scheduled {
		for _, s := range r.View.statistics() {
			m := of.Metric(s)
			l.add(m.Heading(), plainMetric(m, r.Result))
		}
	}
	l.rule("", "=")
	return l.lines
}

// multiToken reports whether chunks have other numbers of tokens than one, so that
// ITL is not the time between tokens.
func (r Run) multiToken() bool {
	d := r.Result.TokensPerChunk
	return d.Count > 0 && (d.Min != 1 || d.Max != 1)
}

// addCounts adds the counts and rates of the block.
func (r Run) addCounts(l *listing) {
	info, result := r.Info, r.Result
	metrics := func(keys ...string) {
		for _, key := range keys {
			m := run.MustMetric(key)
			value := plainMetric(m, result)
			if key == "max_concurrent_requests" {
				value += ".00" // as vLLM prints it
			}
			l.add(m.Heading(), value)
		}
	}
	metrics("completed", "failed")
	if result.Abandoned.Requests > 0 {
		metrics("abandoned")
	}
	if info.NotSent > 0 {
		l.add("Requests not sent", strconv.Itoa(info.NotSent))
	}
	if n := info.Limits.MaxConcurrency; n > 0 {
		l.add("Maximum request concurrency", strconv.Itoa(n))
	}
	if info.Trace.Rate > 0 {
		l.add("Request rate configured (RPS)", twoDecimals(trace.Some(info.Trace.Rate)))
	}
	if w := info.Window; result.Window != (run.Span{}) {
		l.add("Warm-up time (s)", twoDecimals(trace.Some(w.WarmupSeconds)))
		l.add("Cool-down time (s)", twoDecimals(trace.Some(w.CooldownSeconds)))
	}
	metrics("duration", "total_input_tokens", "total_output_tokens")
	if result.Cached.Set {
		metrics("cached_tokens")
	}
	if result.Reasoning.Value > 0 {
		metrics("mean_reasoning_tokens")
	}
	if r.multiToken() {
		d := result.TokensPerChunk
		l.add("Mean tokens per chunk", doc.Fixed(d.Mean, 2))
		l.add("P99 tokens per chunk", doc.Fixed(d.Quantile(0.99), 2))
	}
	metrics("request_throughput")
	if result.Goodput != nil {
		metrics("request_goodput")
	}
	metrics("output_throughput", "max_output_tokens_per_s", "max_concurrent_requests", "total_token_throughput")
}
