package diff

import (
	"fmt"
	"strconv"
	"strings"

	"moontide/analyze/run"
	"moontide/trace"
	"moontide/trace/stats"
)

// Metric is a number that a run has, by the name it has in a run's summary.
type Metric struct {
	Name string
	// better is 1 where more is better, -1 where less is, 0 where neither.
	better int
	of     func(r *run.Result) trace.Opt[float64]
	// statistic makes intervals; nil where there are none.
	statistic func(s side) statistic
}

// Metrics are those of the "Serving Benchmark Result" block that differ from
// server to server, with the shares of requests that failed and of prompt tokens
// that were cached.
func Metrics() (all []Metric) {
	for _, name := range []string{"request_throughput", "output_throughput", "total_token_throughput", "failed_share", "cached_share"} {
		all = append(all, plain[name].named(name))
	}
	for _, latency := range []string{"ttft_ms", "tpot_ms", "itl_ms", "e2el_ms"} {
		for _, stat := range []string{"mean_", "median_", "p99_"} {
			m, _ := ParseMetric(stat + latency)
			all = append(all, m)
		}
	}
	return all
}

// ParseMetric finds a metric by its name in a run's summary, such as p99_ttft_ms.
// Any percentile goes, from p0 to p100.
func ParseMetric(name string) (Metric, error) {
	if m, known := plain[name]; known {
		return m.named(name), nil
	}
	stat, latency, _ := strings.Cut(name, "_")
	l, known := latencies[latency]
	l.name = latency
	if !known {
		return Metric{}, fmt.Errorf("there is no metric %q: one is p99_ttft_ms, others are mean_itl_ms, output_throughput and what else a run's summary has", name)
	}
	m := Metric{Name: name, better: -1}
	switch stat {
	case "mean":
		m.of, m.statistic = l.result(func(d stats.Sample) float64 { return d.Mean }), l.sampled((*sample).meanStatistic)
	case "std":
		m.of, m.statistic = l.result(func(d stats.Sample) float64 { return d.Std }), l.sampled((*sample).stdStatistic)
	case "min": // what is not in a resample may be less
		m.of = l.result(func(d stats.Sample) float64 { return d.Min })
	case "max":
		m.of = l.result(func(d stats.Sample) float64 { return d.Max })
	case "median":
		m.of, m.statistic = l.quantile(0.5)
	default:
		digits, isPercentile := strings.CutPrefix(stat, "p")
		p, err := strconv.ParseFloat(digits, 64)
		if !isPercentile || strings.Trim(digits, "0123456789.") != "" || err != nil || !(0 <= p && p <= 100) {
			return Metric{}, fmt.Errorf("there is no metric %q: %q is none of mean, median, std, min, max and p0 to p100", name, stat)
		}
		m.of, m.statistic = l.quantile(p / 100)
	}
	return m, nil
}

func (m Metric) named(name string) Metric {
	m.Name = name
	return m
}

// latency is one of the times that a run measured of its requests.
type latency struct {
	name         string
	distribution func(r *run.Result) stats.Sample
	// value is that of a request; nil where only the result tells it, or where
	// the values are the gaps.
	value func(q *request) trace.Opt[float64]
	gaps  bool
}

func (l latency) result(stat func(d stats.Sample) float64) func(r *run.Result) trace.Opt[float64] {
	return func(r *run.Result) trace.Opt[float64] {
		d := l.distribution(r)
		if d.Count == 0 {
			return trace.Opt[float64]{}
		}
		return trace.Some(stat(d))
	}
}

func (l latency) quantile(p float64) (func(r *run.Result) trace.Opt[float64], func(s side) statistic) {
	of := l.result(func(d stats.Sample) float64 { return d.Quantile(p) })
	return of, l.sampled(func(s *sample) statistic { return s.quantileStatistic(p) })
}

// sampled makes a statistic of the values of a side, if they are kept.
func (l latency) sampled(of func(s *sample) statistic) func(s side) statistic {
	if l.value == nil && !l.gaps {
		return nil
	}
	return func(s side) statistic { return of(s.sample(l)) }
}

var latencies = map[string]latency{
	"ttft_ms":               {distribution: func(r *run.Result) stats.Sample { return r.TTFT }, value: (*request).ttft},
	"ttst_ms":               {distribution: func(r *run.Result) stats.Sample { return r.TTST }, value: (*request).ttst},
	"tpot_ms":               {distribution: func(r *run.Result) stats.Sample { return r.TPOT }, value: (*request).tpot},
	"itl_ms":                {distribution: func(r *run.Result) stats.Sample { return r.ITL }, gaps: true},
	"e2el_ms":               {distribution: func(r *run.Result) stats.Sample { return r.E2EL }, value: (*request).e2el},
	"ttft_from_schedule_ms": {distribution: func(r *run.Result) stats.Sample { return r.TTFTFromSchedule }, value: (*request).ttftFromSchedule},
	"e2el_from_schedule_ms": {distribution: func(r *run.Result) stats.Sample { return r.E2ELFromSchedule }, value: (*request).e2elFromSchedule},
	"client_lag_ms":         {distribution: func(r *run.Result) stats.Sample { return r.ClientLag }},
	"schedule_lag_ms":       {distribution: func(r *run.Result) stats.Sample { return r.ScheduleLag }},
	"opening_ms":            {distribution: func(r *run.Result) stats.Sample { return r.Opening }},
	"held_ms":               {distribution: func(r *run.Result) stats.Sample { return r.Held }},
	"blur_ms":               {distribution: func(r *run.Result) stats.Sample { return r.Blur }},
	"first_blur_ms":         {distribution: func(r *run.Result) stats.Sample { return r.FirstBlur }},
}

func always(v func(r *run.Result) float64) func(r *run.Result) trace.Opt[float64] {
	return func(r *run.Result) trace.Opt[float64] { return trace.Some(v(r)) }
}

// plain are the metrics that are no statistic of a latency.
var plain = map[string]Metric{
	"request_throughput":     {better: 1, of: func(r *run.Result) trace.Opt[float64] { return r.RequestRate }, statistic: rate(func(l *load) *[stretches]float64 { return &l.ended })},
	"output_throughput":      {better: 1, of: func(r *run.Result) trace.Opt[float64] { return r.OutputRate }, statistic: rate(func(l *load) *[stretches]float64 { return &l.output })},
	"total_token_throughput": {better: 1, of: func(r *run.Result) trace.Opt[float64] { return r.TotalRate }, statistic: rate(func(l *load) *[stretches]float64 { return &l.tokens })},
	// goodput is measured where a run is read with objectives.
	"goodput": {better: 1, statistic: rate(func(l *load) *[stretches]float64 { return &l.good }), of: func(r *run.Result) trace.Opt[float64] {
		if r.Goodput == nil {
			return trace.Opt[float64]{}
		}
		return r.Goodput.Rate
	}},
	"failed_share": {better: -1, statistic: side.failedShare, of: func(r *run.Result) trace.Opt[float64] {
		return shareOf(r.Failed, r.Completed+r.Failed)
	}},
	"cached_share": {better: 1, statistic: side.cachedShare, of: func(r *run.Result) trace.Opt[float64] {
		if !r.Cached.Set {
			return trace.Opt[float64]{}
		}
		return shareOf(r.Cached.Value, r.Input)
	}},

	"completed":               {better: 1, of: always(func(r *run.Result) float64 { return float64(r.Completed) })},
	"failed":                  {better: -1, of: always(func(r *run.Result) float64 { return float64(r.Failed) })},
	"duration":                {of: always(func(r *run.Result) float64 { return r.Duration.Seconds() })},
	"total_input_tokens":      {of: always(func(r *run.Result) float64 { return float64(r.Input) })},
	"total_output_tokens":     {of: always(func(r *run.Result) float64 { return float64(r.Output) })},
	"max_output_tokens_per_s": {better: 1, of: always(func(r *run.Result) float64 { return r.PeakOutputRate })},
	"max_concurrent_requests": {of: always(func(r *run.Result) float64 { return float64(r.PeakConcurrency) })},
	"offered_rate":            {of: func(r *run.Result) trace.Opt[float64] { return r.OfferedRate }},
	"achieved_rate":           {better: 1, of: func(r *run.Result) trace.Opt[float64] { return r.AchievedRate }},
	"cached_tokens": {better: 1, of: func(r *run.Result) trace.Opt[float64] {
		return trace.Opt[float64]{Value: float64(r.Cached.Value), Set: r.Cached.Set}
	}},
}

func shareOf(part, whole int) trace.Opt[float64] {
	if whole <= 0 {
		return trace.Opt[float64]{}
	}
	return trace.Some(float64(part) / float64(whole))
}
