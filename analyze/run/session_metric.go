package run

import (
	"fmt"
	"slices"
	"strings"

	"moontide/trace"
	"moontide/trace/stats"
)

// TurnsUnit is the unit of the length of a session.
const TurnsUnit Unit = "turns"

// sessionMetrics lists the metrics of sessions that are not a statistic.
var sessionMetrics = []Metric{
	{Key: "completed_sessions", Label: "Completed sessions", Better: Higher, value: ofSessions(func(s *Sessions) trace.Opt[float64] { return trace.Some(float64(s.Completed)) })},
	{Key: "failed_sessions", Label: "Failed sessions", Better: Lower, value: ofSessions(func(s *Sessions) trace.Opt[float64] { return trace.Some(float64(s.Failed)) })},
	{Key: "abandoned_sessions", Label: "Abandoned sessions", Better: Lower, value: ofSessions(func(s *Sessions) trace.Opt[float64] { return trace.Some(float64(s.Abandoned)) })},
	{Key: "sessions_per_hour", Label: "Completed sessions per hour", Better: Higher, Unit: PerHour, value: ofSessions(func(s *Sessions) trace.Opt[float64] { return s.PerHour })},
}

// sessionStatistics are the properties of sessions that metrics are statistics of.
var sessionStatistics = []struct {
	key, label string
	unit       Unit
	better     Direction
	of         func(s *Sessions) stats.Sample
}{
	{"session_duration_s", "session duration", Seconds, Lower, func(s *Sessions) stats.Sample { return s.Duration }},
	{"session_turns", "session length", TurnsUnit, Neither, func(s *Sessions) stats.Sample { return s.Turns }},
}

func ofSessions(of func(s *Sessions) trace.Opt[float64]) func(r *Result) trace.Opt[float64] {
	return func(r *Result) trace.Opt[float64] {
		if r.Sessions == nil {
			return trace.Opt[float64]{}
		}
		return of(r.Sessions)
	}
}

// SessionMetrics returns the metrics of sessions: counts and rates, then statistics.
func SessionMetrics(statistics []Statistic) []Metric {
	all := slices.Clone(sessionMetrics)
	for i := range sessionStatistics {
		for _, s := range statistics {
			all = append(all, sessionMetric(i, s))
		}
	}
	return all
}

func sessionMetric(which int, s Statistic) Metric {
	p := sessionStatistics[which]
	return Metric{
		Key: s.Key + "_" + p.key, Label: s.Label() + " " + p.label, Unit: p.unit, Better: p.better, Statistic: s, Session: true,
		value: ofSessions(func(of *Sessions) trace.Opt[float64] {
			d := p.of(of)
			return trace.Opt[float64]{Value: s.Of(d), Set: d.Count > 0}
		}),
	}
}

// parseSessionMetric returns the metric with a key, if it is one of sessions.
func parseSessionMetric(key string) (m Metric, known bool, err error) {
	if i := slices.IndexFunc(sessionMetrics, func(m Metric) bool { return m.Key == key }); i >= 0 {
		return sessionMetrics[i], true, nil
	}
	statistic, property, _ := strings.Cut(key, "_")
	for i, p := range sessionStatistics {
		if property != p.key && property != strings.TrimSuffix(p.key, "_s") {
			continue
		}
		s, err := ParseStatistic(statistic)
		if err != nil {
			return m, true, fmt.Errorf("unknown metric %q: %w", key, err)
		}
		return sessionMetric(i, s), true, nil
	}
	return m, false, nil
}

// Count returns the number of values that a metric of a latency or of sessions is a
// statistic of, else 0.
func (m Metric) Count(r *Result) int {
	switch {
	case m.Latency != NoLatency:
		return r.Latency(m.Latency).Count
	case m.Session && r.Sessions != nil:
		return r.Sessions.Duration.Count
	}
	return 0
}
