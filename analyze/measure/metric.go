package measure

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/stats"
)

// Metric is one number of a run: a count, a rate, a share, or a statistic of a latency or of
// a property of sessions. Reports, gates and comparisons follow from its row.
type Metric struct {
	Key    string // in JSON and CSV; the same as vLLM's if it has one
	Label  string // without the unit: see Heading
	Unit   Unit
	Better Direction
	// Statistic is the statistic of Latency; with NoLatency, of a session property.
	Latency   Latency
	Statistic Statistic
	Goodput   bool // requires objectives
	Session   bool // of sessions, by Statistic
	// Extra metrics are reported if they are above 0: see ExtraMetrics.
	Extra bool
	// Compare says when the metric is compared by default.
	Compare CompareWhen

	column string // heading in published tables, if different from Label
	value  func(r *Result) trace.Opt[float64]
	of     func(r *Result) stats.Sample // of a Statistic, instead of value

	// PerSecond is what a request adds to a rate: at its end, and evenly from its first token
	// to its last. PartOf is what it adds to both sides of a share. Comparisons resample them.
	PerSecond func(q *Request) (atEnd, streamed float64)
	PartOf    func(q *Request) (part, whole float64)
}

// CompareWhen says when a metric is compared by default.
type CompareWhen int

const (
	CompareIfNamed CompareWhen = iota
	CompareAlways
	CompareIfAboveZero
)

// Value returns the metric's value, absent if the run did not measure it.
func (m Metric) Value(r *Result) trace.Opt[float64] {
	if m.of != nil {
		d := m.of(r)
		return trace.Opt[float64]{Value: m.Statistic.Of(d), Set: d.Count > 0}
	}
	return m.value(r)
}

// Count returns the number of values that the statistic summarizes; 0 if there is none.
func (m Metric) Count(r *Result) int {
	if m.of == nil {
		return 0
	}
	return m.of(r).Count
}

// NeedsTokenTimes reports whether the metric depends on the times of tokens other than the
// first and the last.
func (m Metric) NeedsTokenTimes() bool {
	return m.Key == "max_output_tokens_per_s" || m.Latency == ITL || m.Latency == ITLPerToken || m.Latency == TTST
}

// Heading returns the label with the unit, such as "Mean TTFT (ms)".
func (m Metric) Heading() string {
	if m.Unit == Count || m.Unit == Share {
		return m.Label
	}
	return m.Label + " (" + string(m.Unit) + ")"
}

// Column returns the heading in tables of published results.
func (m Metric) Column() string {
	if m.column != "" {
		m.Label = m.column
	}
	return m.Heading()
}

// Unit is the unit of a metric.
type Unit string

const (
	Count             Unit = ""      // number of requests or tokens
	Share             Unit = "share" // from 0 to 1
	Seconds           Unit = "s"
	Milliseconds      Unit = "ms"
	RequestsPerSecond Unit = "req/s"
	TokensPerSecond   Unit = "tok/s"
	PerHour           Unit = "1/h"
	Tokens            Unit = "tokens" // per request
	TurnsUnit         Unit = "turns"  // of a session
)

// Direction is the direction in which a metric improves.
type Direction int

const (
	Lower   Direction = -1
	Neither Direction = 0
	Higher  Direction = 1
)

// metrics lists the metrics that are not a statistic of a latency. The first ones are those of
// the "Serving Benchmark Result" block, in its order.
var metrics = []Metric{
	{Key: "completed", Label: "Successful requests", Better: Higher, value: count(func(r *Result) int { return r.Completed })},
	{Key: "failed", Label: "Failed requests", Better: Lower, value: count(func(r *Result) int { return r.Failed })},
	{Key: "duration", Label: "Benchmark duration", Unit: Seconds, value: func(r *Result) trace.Opt[float64] { return trace.Some(r.Duration.Seconds()) }},
	{Key: "total_input_tokens", Label: "Total input tokens", value: count(func(r *Result) int { return r.Input })},
	{Key: "total_output_tokens", Label: "Total generated tokens", value: count(func(r *Result) int { return r.Output })},
	{Key: "cached_tokens", Label: "Total cached tokens", Better: Higher, value: func(r *Result) trace.Opt[float64] {
		return trace.Opt[float64]{Value: float64(r.Cached.Value), Set: r.Cached.Set}
	}},
	{
		Key: "request_throughput", Label: "Request throughput", column: "Request Throughput", Unit: RequestsPerSecond, Better: Higher, Compare: CompareAlways,
		value:     func(r *Result) trace.Opt[float64] { return r.RequestRate },
		PerSecond: func(q *Request) (atEnd, streamed float64) { return one(q.Ended && q.Class == replay.OK), 0 },
	},
	{
		Key: "output_throughput", Label: "Output token throughput", column: "Output Token Throughput", Unit: TokensPerSecond, Better: Higher, Compare: CompareAlways,
		value:     func(r *Result) trace.Opt[float64] { return r.OutputRate },
		PerSecond: func(q *Request) (atEnd, streamed float64) { return 0, one(q.Counted) * float64(q.Output) },
	},
	{Key: "max_output_tokens_per_s", Label: "Peak output token throughput", Unit: TokensPerSecond, Better: Higher, value: func(r *Result) trace.Opt[float64] { return trace.Some(r.PeakOutputRate) }},
	{Key: "max_concurrent_requests", Label: "Peak concurrent requests", value: count(func(r *Result) int { return r.PeakConcurrency })},
	{
		Key: "total_token_throughput", Label: "Total token throughput", Unit: TokensPerSecond, Better: Higher, Compare: CompareAlways,
		value: func(r *Result) trace.Opt[float64] { return r.TotalRate },
		PerSecond: func(q *Request) (atEnd, streamed float64) {
			return one(q.Counted) * float64(q.InputTokens()), one(q.Counted) * float64(q.Output)
		},
	},
	{
		Key: "request_goodput", Label: "Request goodput", Unit: RequestsPerSecond, Better: Higher, Goodput: true,
		value:     goodput(func(g *Goodput) trace.Opt[float64] { return g.Rate }),
		PerSecond: func(q *Request) (atEnd, streamed float64) { return one(q.Good), 0 },
	},
	{Key: "good_share", Label: "Share that meets every objective", Unit: Share, Better: Higher, Goodput: true, value: goodput(func(g *Goodput) trace.Opt[float64] { return g.Share(g.Good) })},
	{Key: "offered_rate", Label: "Offered request rate", Unit: RequestsPerSecond, value: func(r *Result) trace.Opt[float64] { return r.OfferedRate }},
	{Key: "achieved_rate", Label: "Achieved request rate", column: "Achieved Rate", Unit: RequestsPerSecond, Better: Higher, value: func(r *Result) trace.Opt[float64] { return r.AchievedRate }},
	{
		Key: "failed_share", Label: "Share of failed requests", Unit: Share, Better: Lower, Compare: CompareAlways,
		value:  func(r *Result) trace.Opt[float64] { return trace.Ratio(r.Failed, r.ended()) },
		PartOf: func(q *Request) (part, whole float64) { return one(q.Ended && q.Class.Failed()), q.inEnded() },
	},
	{Key: "abandoned", Label: "Abandoned requests", Better: Lower, value: count(func(r *Result) int { return r.Abandoned.Requests })},
	{
		Key: "abandoned_share", Label: "Share of abandoned requests", Unit: Share, Better: Lower, Compare: CompareIfAboveZero,
		value: func(r *Result) trace.Opt[float64] { return trace.Ratio(r.Abandoned.Requests, r.ended()) },
		PartOf: func(q *Request) (part, whole float64) {
			return one(q.Ended && q.Class == replay.Abandoned), q.inEnded()
		},
	},
	{
		Key: "cached_share", Label: "Share of cached input tokens", Unit: Share, Better: Higher, Compare: CompareAlways,
		value: func(r *Result) trace.Opt[float64] {
			if !r.Cached.Set {
				return trace.Opt[float64]{}
			}
			return trace.Ratio(r.Cached.Value, r.Input)
		},
		PartOf: func(q *Request) (part, whole float64) {
			return one(q.Counted) * float64(max(q.Cached, 0)), one(q.Counted) * float64(q.InputTokens())
		},
	},
	{Key: "mean_reasoning_tokens", Label: "Mean reasoning length", Unit: Tokens, Extra: true, value: func(r *Result) trace.Opt[float64] { return r.Reasoning }},
	{Key: "completed_sessions", Label: "Completed sessions", Better: Higher, Session: true, value: ofSessions(func(s *Sessions) trace.Opt[float64] { return trace.Some(float64(s.Completed)) })},
	{Key: "failed_sessions", Label: "Failed sessions", Better: Lower, Session: true, Compare: CompareIfAboveZero, value: ofSessions(func(s *Sessions) trace.Opt[float64] { return trace.Some(float64(s.Failed)) })},
	{Key: "abandoned_sessions", Label: "Abandoned sessions", Better: Lower, Session: true, value: ofSessions(func(s *Sessions) trace.Opt[float64] { return trace.Some(float64(s.Abandoned)) })},
	{Key: "sessions_per_hour", Label: "Completed sessions per hour", Better: Higher, Unit: PerHour, Session: true, Compare: CompareIfAboveZero, value: ofSessions(func(s *Sessions) trace.Opt[float64] { return s.PerHour })},
}

// sessionProperties are the session properties that metrics summarize. Key and Label are
// appended to the key and label of the statistic.
var sessionProperties = []Metric{
	{Key: "session_duration_s", Label: "session duration", Unit: Seconds, Better: Lower, Compare: CompareIfAboveZero, of: func(r *Result) stats.Sample {
		return cmp.Or(r.Sessions, &Sessions{}).Duration
	}},
	{Key: "session_turns", Label: "session length", Unit: TurnsUnit, of: func(r *Result) stats.Sample { return cmp.Or(r.Sessions, &Sessions{}).Turns }},
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// inEnded is 1 for a request that a share of failed or abandoned requests covers.
func (q *Request) inEnded() float64 { return one(q.Counted || q.Ended && q.Class != replay.OK) }

// Metrics returns the metrics that are not a statistic of a latency.
func Metrics() []Metric { return slices.Clone(metrics) }

func count(of func(r *Result) int) func(r *Result) trace.Opt[float64] {
	return func(r *Result) trace.Opt[float64] { return trace.Some(float64(of(r))) }
}

// goodput and ofSessions return a value of a part of the result, absent without that part.
func goodput(of func(*Goodput) trace.Opt[float64]) func(r *Result) trace.Opt[float64] {
	return func(r *Result) (none trace.Opt[float64]) {
		if r.Goodput == nil {
			return none
		}
		return of(r.Goodput)
	}
}

func ofSessions(of func(*Sessions) trace.Opt[float64]) func(r *Result) trace.Opt[float64] {
	return func(r *Result) (none trace.Opt[float64]) {
		if r.Sessions == nil {
			return none
		}
		return of(r.Sessions)
	}
}

// with returns a statistic of a session property.
func (m Metric) with(s Statistic) Metric {
	m.Key, m.Label, m.Statistic, m.Session = s.Key+"_"+m.Key, s.Label()+" "+m.Label, s, true
	return m
}

// SessionMetrics returns the metrics of sessions: counts and rates, then statistics.
func SessionMetrics(statistics []Statistic) []Metric {
	all := slices.DeleteFunc(slices.Clone(metrics), func(m Metric) bool { return !m.Session })
	for _, p := range sessionProperties {
		for _, s := range statistics {
			all = append(all, p.with(s))
		}
	}
	return all
}

// ExtraMetrics returns the metrics besides those of the block that some of the runs have.
func ExtraMetrics(runs ...*Result) []Metric {
	return slices.DeleteFunc(slices.Clone(metrics), func(m Metric) bool {
		return !m.Extra || !slices.ContainsFunc(runs, func(r *Result) bool { return m.Value(r).Value > 0 })
	})
}

// MetricsToCompare returns the metrics that are compared by default: always, with some
// statistics of VLLMLatencies, or if a run has any.
func MetricsToCompare(when CompareWhen) (all []Metric) {
	latencies := VLLMLatencies
	if when == CompareIfAboveZero {
		latencies = []Latency{TTFVT}
	}
	statistics := []Statistic{Mean, Median, Percentile(99)}
	for _, m := range metrics {
		if m.Compare == when {
			all = append(all, m)
		}
	}
	for _, l := range latencies {
		for _, s := range statistics {
			all = append(all, l.Metric(s))
		}
	}
	for _, p := range sessionProperties {
		for _, s := range statistics {
			if p.Compare == when {
				all = append(all, p.with(s))
			}
		}
	}
	return all
}

func goodShare(l Latency) Metric {
	return Metric{
		Key: "good_share_" + l.String(), Label: "Share that meets the " + l.Label() + " objective", Unit: Share, Better: Higher, Goodput: true,
		value: goodput(func(g *Goodput) trace.Opt[float64] {
			for _, o := range g.Objectives {
				if o.Latency == l {
					return g.Share(o.Met)
				}
			}
			return trace.Opt[float64]{}
		}),
	}
}

// BlockMetrics returns the counts and rates of the block, then those of objectives.
func BlockMetrics(objectives []Objective) []Metric {
	last := "total_token_throughput"
	if len(objectives) > 0 {
		last = "good_share"
	}
	end := slices.IndexFunc(metrics, func(m Metric) bool { return m.Key == last }) + 1
	all := slices.Clone(metrics[:end])
	for _, o := range objectives {
		m := goodShare(o.Latency)
		m.Label = fmt.Sprintf("Share with %s at most %s ms", o.Latency.Label(), stats.Plain(o.LimitMS))
		all = append(all, m)
	}
	return all
}

// Metric returns a statistic of the latency.
func (l Latency) Metric(s Statistic) Metric {
	m := Metric{Key: s.Key + "_" + l.Key(), Label: s.Label() + " " + l.Label(), Unit: Milliseconds, Better: Lower, Latency: l, Statistic: s}
	m.of = func(r *Result) stats.Sample { return r.Latency(l) }
	if column := latencies[l].column; column != "" {
		m.column = s.Label() + " " + column
	}
	return m
}

// ParseMetric returns the metric with a key, such as output_throughput or
// p99_ttft_ms.
func ParseMetric(key string) (Metric, error) {
	if key == "goodput" {
		key = "request_goodput"
	}
	if i := slices.IndexFunc(metrics, func(m Metric) bool { return m.Key == key }); i >= 0 {
		return metrics[i], nil
	}
	if name, ok := strings.CutPrefix(key, "good_share_"); ok {
		l, err := ParseLatency(name)
		if err != nil {
			return Metric{}, err
		}
		return goodShare(l), nil
	}
	stat, property, _ := strings.Cut(key, "_")
	with := statisticsOf(property)
	if with == nil {
		return Metric{}, fmt.Errorf("unknown metric %q: want a key of a run's summary, such as p99_ttft_ms, mean_itl_ms or output_throughput", key)
	}
	s, err := ParseStatistic(stat)
	if err != nil {
		return Metric{}, fmt.Errorf("unknown metric %q: %w", key, err)
	}
	return with(s), nil
}

// statisticsOf returns the metrics that are a statistic of a property, nil if it is unknown.
func statisticsOf(property string) func(Statistic) Metric {
	for _, p := range sessionProperties {
		if property == p.Key || property == strings.TrimSuffix(p.Key, "_s") {
			return p.with
		}
	}
	for l := NoLatency + 1; l < latencyCount; l++ {
		if property == l.Key() || latencies[l].oldKey != "" && property == latencies[l].oldKey+"_ms" {
			return l.Metric
		}
	}
	return nil
}

// MustMetric is like ParseMetric but panics if the key is unknown.
func MustMetric(key string) Metric {
	m, err := ParseMetric(key)
	if err != nil {
		panic(err)
	}
	return m
}

// Statistic is a statistic of a distribution, such as the mean or a percentile.
type Statistic struct {
	Key        string  // mean, median, std, min, max, p99
	P          float64 // quantile from 0 to 1, if IsQuantile
	IsQuantile bool
	of         func(d stats.Sample) float64
}

// The statistics other than percentiles.
var (
	Mean   = Statistic{Key: "mean", of: func(d stats.Sample) float64 { return d.Mean }}
	Median = Statistic{Key: "median", P: 0.5, IsQuantile: true}
	Std    = Statistic{Key: "std", of: func(d stats.Sample) float64 { return d.Std }} // population standard deviation
	Min    = Statistic{Key: "min", of: func(d stats.Sample) float64 { return d.Min }}
	Max    = Statistic{Key: "max", of: func(d stats.Sample) float64 { return d.Max }}
)

// Percentile returns the statistic for a percentile from 0 to 100.
func Percentile(p float64) Statistic {
	return Statistic{Key: "p" + stats.Plain(p), P: p / 100, IsQuantile: true}
}

// Of returns the statistic of a distribution, or 0 if it has no values.
func (s Statistic) Of(d stats.Sample) float64 {
	if s.IsQuantile {
		return d.Quantile(s.P)
	}
	return s.of(d)
}

// Label returns the name used in text, such as Mean or P99.
func (s Statistic) Label() string { return strings.ToUpper(s.Key[:1]) + s.Key[1:] }

// ParseStatistic parses mean, median, std, min, max, or a percentile such as p99.
func ParseStatistic(key string) (Statistic, error) {
	for _, s := range []Statistic{Mean, Median, Std, Min, Max} {
		if s.Key == key {
			return s, nil
		}
	}
	digits, isPercentile := strings.CutPrefix(key, "p")
	p, err := strconv.ParseFloat(digits, 64)
	if !isPercentile || strings.Trim(digits, "0123456789.") != "" || err != nil || !(0 <= p && p <= 100) {
		return Statistic{}, fmt.Errorf("statistic %q is none of mean, median, std, min, max and p0 to p100", key)
	}
	s := Percentile(p)
	s.Key = key
	return s, nil
}
