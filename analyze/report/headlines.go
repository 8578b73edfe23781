package report

import (
	"fmt"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/analyze/run"
	"moontide/replay/bench"
	"moontide/trace"
	"moontide/trace/stats"
)

// headline returns a result with the unit of its text, such as "2.5 s", apart.
func headline(key, text, note string) doc.KeyValue {
	value, unit, _ := strings.Cut(text, " ")
	return doc.KeyValue{Key: key, Value: value, Unit: unit, Note: note}
}

// metricHeadline returns the value of a metric.
func metricHeadline(m run.Metric, v trace.Opt[float64], note string) doc.KeyValue {
	h := headline(m.Label, planCell(m, v), note)
	if h.Unit == "" {
		h.Unit = string(m.Unit)
	}
	return h
}

// headlines returns the highest throughput of each deployment and, with gates, the
// highest load that meets them.
func (s Sweep) headlines() (all []doc.KeyValue) {
	throughput := run.MustMetric("output_throughput")
	for _, d := range s.Deployments {
		var best, met *SweepPoint
		for i := range d.Points {
			p := &d.Points[i]
			if v := throughput.Value(p.Result); v.Set && p.Result.Verdict.Level != run.Invalid && (best == nil || v.Value > throughput.Value(best.Result).Value) {
				best = p
			}
			if len(p.Judgements) > 0 && len(run.Failed(p.Judgements)) == 0 {
				met = p
			}
		}
		if met != nil {
			all = append(all, doc.KeyValue{Key: d.headline("Meets the objectives up to"), Value: met.Level, Unit: s.unit(), Note: s.latencies(met)})
		} else if len(d.Points) > 0 && len(d.Points[0].Judgements) > 0 {
			all = append(all, doc.KeyValue{Key: d.headline("Meets the objectives"), Value: "nowhere"})
		}
		if best != nil {
			h := metricHeadline(throughput, throughput.Value(best.Result), strings.TrimSpace("at "+best.Level+" "+s.unit())+": "+s.latencies(best))
			h.Key = d.headline("Most output throughput")
			all = append(all, h)
		}
	}
	return all
}

// unit follows a level.
func (s Sweep) unit() string {
	return map[bench.Axis]string{bench.Rate: "req/s", bench.Speedup: "times the trace's rate", bench.Concurrency: "in flight"}[s.Axis]
}

func (s Sweep) latencies(p *SweepPoint) string {
	var all []string
	for _, l := range []run.Latency{run.TTFT, run.TPOT} {
		m := l.Metric(run.Percentile(99))
		if v := m.Value(p.Result); v.Set {
			all = append(all, lowerFirst(m.Label)+" "+planCell(m, v))
		}
	}
	return strings.Join(all, ", ")
}

// headlines returns what a trace asks of a server.
func (d Dataset) headlines() []doc.KeyValue {
	a := d.Analysis
	tokens := func(key string, s stats.Sample) doc.KeyValue {
		return doc.KeyValue{Key: key, Value: doc.Fixed(s.Mean, 0), Unit: "tokens", Note: fmt.Sprintf("median %s, p99 %s", doc.Fixed(s.Quantile(0.5), 0), doc.Fixed(s.Quantile(0.99), 0))}
	}
	all := []doc.KeyValue{{Key: "Requests", Value: doc.Int(a.Requests), Note: "without arrival times"}}
	if at := a.Arrivals; at != nil {
		all[0].Note = "over " + span(at.Duration())
		if at.Rate.Set {
			all = append(all, doc.KeyValue{Key: "Request rate", Value: doc.Fixed(at.Rate.Value, 2), Unit: "req/s", Note: "inter-arrival CV " + doc.FixedOr(at.CV, 2)})
		}
	}
	all = append(all, tokens("Mean ISL", a.ISL), tokens("Mean OSL", a.OSL))
	if b := a.Prefix; b != nil && b.Infinite.Token.Set {
		hits := b.Infinite.Token
		all = append(all, doc.KeyValue{Key: "Token hit rate", Value: doc.Percent(hits.Value), Unit: "%", Note: "of an infinite cache"})
	}
	if s := a.Sessions; s != nil {
		all = append(all, doc.KeyValue{Key: "Turns per session", Value: doc.Fixed(s.Turns.Mean, 2), Note: fmt.Sprintf("%s, up to %s turns", doc.Count(s.Sessions, "session"), doc.Fixed(s.Turns.Max, 0))})
	}
	return all
}
