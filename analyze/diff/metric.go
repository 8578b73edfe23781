package diff

import (
	"moontide/analyze/run"
)

// DefaultMetrics are the rates, mean, median and p99 of the latencies that vLLM's
// benchmark reports, and the shares of failed requests and of cached tokens.
func DefaultMetrics() (all []run.Metric) {
	for _, key := range []string{"request_throughput", "output_throughput", "total_token_throughput", "failed_share", "cached_share"} {
		all = append(all, run.MustMetric(key))
	}
	for _, l := range run.VLLMLatencies {
		for _, s := range []run.Statistic{run.Mean, run.Median, run.Percentile(99)} {
			all = append(all, l.Metric(s))
		}
	}
	return all
}

// statistic is the metric of any resample of the side. Its function is nil where
// that cannot be known: of counts, of what all requests of a run make together,
// and of a minimum or maximum, as what is not in a resample may lie beyond it.
func (s side) statistic(m run.Metric) statistic {
	switch m.Key {
	case "request_throughput":
		return s.rate(func(l *load) *[stretches]float64 { return &l.ended })
	case "output_throughput":
		return s.rate(func(l *load) *[stretches]float64 { return &l.output })
	case "total_token_throughput":
		return s.rate(func(l *load) *[stretches]float64 { return &l.tokens })
	case "request_goodput":
		return s.rate(func(l *load) *[stretches]float64 { return &l.good })
	case "failed_share":
		return s.failedShare()
	case "cached_share":
		return s.cachedShare()
	}
	if m.Latency == run.NoLatency || !m.Latency.OfCompleted() || m.Latency == run.FirstStampError || m.Latency == run.MaxStampError {
		return statistic{}
	}
	switch {
	case m.Statistic.IsQuantile:
		return s.sample(m.Latency).quantileStatistic(m.Statistic.P)
	case m.Statistic.Key == run.Mean.Key:
		return s.sample(m.Latency).meanStatistic()
	case m.Statistic.Key == run.Std.Key:
		return s.sample(m.Latency).stdStatistic()
	}
	return statistic{}
}
