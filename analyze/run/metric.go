package run

import (
	"fmt"
	"slices"
	"strings"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/stats"
)

// Metric is one of the times that a run measures of its requests, by the name
// that flags and summaries call it.
type Metric string

// The metrics. See [Result] for what they mean.
const (
	TTFT             Metric = "ttft"
	TTST             Metric = "ttst"
	TPOT             Metric = "tpot"
	ITL              Metric = "itl"
	E2EL             Metric = "e2el"
	TTFTFromSchedule Metric = "ttft_from_schedule"
	E2ELFromSchedule Metric = "e2el_from_schedule"
	ScheduleLag      Metric = "schedule_lag"
	ClientLag        Metric = "client_lag"
	Opening          Metric = "opening"
	Held             Metric = "held"
)

// Metrics are all metrics, in the order in which reports tell them.
var Metrics = []Metric{TTFT, TTST, TPOT, ITL, E2EL, TTFTFromSchedule, E2ELFromSchedule, ScheduleLag, ClientLag, Opening, Held}

// ParseMetrics reads names with commas between them, each of them once.
func ParseMetrics(text string) ([]Metric, error) {
	var all []Metric
	for name := range strings.SplitSeq(text, ",") {
		m, err := ParseMetric(name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(all, m) {
			return nil, fmt.Errorf("%s is named twice", m)
		}
		all = append(all, m)
	}
	return all, nil
}

// ParseMetric finds a metric by its name.
func ParseMetric(name string) (Metric, error) {
	m := Metric(strings.ToLower(strings.TrimSpace(name)))
	if !slices.Contains(Metrics, m) {
		return "", fmt.Errorf("there is no metric %q: there are %s", name, names(Metrics))
	}
	return m, nil
}

func names(metrics []Metric) string {
	var words []string
	for _, m := range metrics {
		words = append(words, string(m))
	}
	return strings.Join(words, ", ")
}

// Latency is the distribution of a metric, in milliseconds.
func (r *Result) Latency(m Metric) stats.Sample {
	switch m {
	case TTFT:
		return r.TTFT
	case TTST:
		return r.TTST
	case TPOT:
		return r.TPOT
	case ITL:
		return r.ITL
	case E2EL:
		return r.E2EL
	case TTFTFromSchedule:
		return r.TTFTFromSchedule
	case E2ELFromSchedule:
		return r.E2ELFromSchedule
	case ScheduleLag:
		return r.ScheduleLag
	case ClientLag:
		return r.ClientLag
	case Opening:
		return r.Opening
	case Held:
		return r.Held
	}
	return stats.Sample{}
}

// Of is the metric of one request in milliseconds, absent where the request has
// none: a request without a token has no TTFT, an answer of one token no TPOT.
// Its ITL is the longest of its gaps.
func (m Metric) Of(rec *replay.Record) trace.Opt[float64] {
	if !rec.Sent.Set {
		return trace.Opt[float64]{}
	}
	switch m {
	case ScheduleLag:
		return trace.Some(ms(rec.Sent.Value - rec.Due))
	case ClientLag:
		return trace.Some(ms(rec.ClientLag().Value))
	case Opening:
		return trace.Some(ms(rec.Opening))
	case Held:
		return trace.Some(ms(rec.Ready - rec.Due))
	}
	if !rec.First.Set || !rec.Last.Set {
		return trace.Opt[float64]{}
	}
	return m.ofAnswer(rec)
}

// ofAnswer is the metric of a request that was answered.
func (m Metric) ofAnswer(rec *replay.Record) trace.Opt[float64] {
	sent, first, last := rec.Sent.Value, rec.First.Value, rec.Last.Value
	switch m {
	case TTFT:
		return trace.Some(ms(first - sent))
	case E2EL:
		return trace.Some(ms(last - sent))
	case TTFTFromSchedule:
		return trace.Some(ms(first - rec.Due))
	case E2ELFromSchedule:
		return trace.Some(ms(last - rec.Due))
	case TPOT: // that of a one-token answer does not exist; it is not 0
		if output := outputTokens(rec); output > 1 {
			return trace.Some(ms(last-first) / float64(output-1))
		}
	case TTST:
		if len(rec.Gaps) > 0 {
			return trace.Some(ms(rec.Gaps[0]))
		}
	case ITL:
		if len(rec.Gaps) > 0 {
			return trace.Some(ms(slices.Max(rec.Gaps)))
		}
	}
	return trace.Opt[float64]{}
}
