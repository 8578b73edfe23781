package report

import (
	"slices"
	"strconv"

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

// listing returns the "Serving Benchmark Result" block as other tools print it; full
// adds lines that they lack.
func (r Run) listing(full bool) *doc.Listing {
	l := &doc.Listing{Title: "Serving Benchmark Result", Groups: []doc.ListingGroup{{Lines: r.countLines(full)}}}
	stats := func(title string, latencies []run.Latency) {
		group := doc.ListingGroup{Title: title}
		for _, of := range latencies {
			for _, s := range r.View.statistics() {
				m := of.Metric(s)
				group.Lines = append(group.Lines, doc.KeyValue{Key: m.Heading(), Value: plainMetric(m, r.Result)})
			}
		}
		l.Groups = append(l.Groups, group)
	}
	shown := r.View.Latencies
	switch {
	case full:
		shown = Runs{r}.latencies()
	case shown == nil:
		shown = run.VLLMLatencies
	}
	for _, of := range shown {
		stats(of.Title(), []run.Latency{of})
		if full && of == run.ITL && r.multiToken() && !slices.Contains(shown, run.ITLPerToken) {
			stats(run.ITLPerToken.Title(), []run.Latency{run.ITLPerToken})
		}
	}
	if full {
		stats("From the Schedule", run.ScheduleLatencies)
	}
	return l
}

// multiToken reports whether chunks have other numbers of tokens than one, so that
// ITL is not the time between tokens.
func (r Run) multiToken() bool {
	d := r.Result.TokensPerChunk
	return d.Count > 0 && (d.Min != 1 || d.Max != 1)
}

// countLines returns the counts and rates of the block.
func (r Run) countLines(full bool) (lines []doc.KeyValue) {
	info, result := r.Info, r.Result
	add := func(key, value string) { lines = append(lines, doc.KeyValue{Key: key, Value: value}) }
	metrics := func(keys ...string) {
		for _, key := range keys {
			m := run.MustMetric(key)
			value := plainMetric(m, result)
			if key == "max_concurrent_requests" {
				value += ".00" // as vLLM prints it
			}
			add(m.Heading(), value)
		}
	}
	metrics("completed", "failed")
	if full && result.Abandoned.Requests > 0 {
		metrics("abandoned")
	}
	if full && info.NotSent > 0 {
		add("Requests not sent", strconv.Itoa(info.NotSent))
	}
	if n := info.Limits.MaxConcurrency; n > 0 {
		add("Maximum request concurrency", strconv.Itoa(n))
	}
	if info.Trace.Rate > 0 {
		add("Request rate configured (RPS)", twoDecimals(trace.Some(info.Trace.Rate)))
	}
	if w := info.Window; result.Window != (run.Span{}) {
		add("Warm-up time (s)", twoDecimals(trace.Some(w.WarmupSeconds)))
		add("Cool-down time (s)", twoDecimals(trace.Some(w.CooldownSeconds)))
	}
	metrics("duration", "total_input_tokens", "total_output_tokens")
	if full && result.Cached.Set {
		metrics("cached_tokens")
	}
	if full && result.Reasoning.Value > 0 {
		metrics("mean_reasoning_tokens")
	}
	if full && r.multiToken() {
		d := result.TokensPerChunk
		add("Mean tokens per chunk", doc.Fixed(d.Mean, 2))
		add("P99 tokens per chunk", doc.Fixed(d.Quantile(0.99), 2))
	}
	metrics("request_throughput")
	if result.Goodput != nil {
		metrics("request_goodput")
	}
	metrics("output_throughput", "max_output_tokens_per_s", "max_concurrent_requests", "total_token_throughput")
	return lines
}
