package report

import (
	"cmp"
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

// headlines returns what was found, or else the smallest deployment that meets the gates
// and what it does. Without gates, they are the best values of all deployments.
func (p Plan) headlines() (all []doc.KeyValue) {
	switch {
	case len(p.Predictions) == 0:
	case len(p.Found) > 0:
		for i := range p.Found {
			all = append(all, p.foundHeadline(&p.Found[i]))
		}
	case len(p.Gates) > 0:
		all = p.smallestHeadlines()
	default:
		throughput := func(r *bench.Prediction) trace.Opt[float64] {
			v := r.PerEngine(p.value(&r.Forecast, planThroughput))
			return trace.Opt[float64]{Value: -v.Value, Set: v.Set}
		}
		if best, v := p.least(throughput); best != nil {
			v.Value = -v.Value
			all = append(all, metricHeadline(run.MustMetric(planThroughput), v, PredictionName(best)))
			all[0].Key = "Most throughput per engine"
		}
		for _, l := range []run.Latency{run.TTFT, run.TPOT} {
			m := l.Metric(run.Mean)
			if best, v := p.least(func(r *bench.Prediction) trace.Opt[float64] { return p.value(&r.Forecast, m.Key) }); best != nil {
				h := metricHeadline(m, v, PredictionName(best))
				h.Key = "Lowest " + lowerFirst(m.Label)
				all = append(all, h)
			}
		}
	}
	return all
}

// least returns the prediction with the least value, nil if none has any.
func (p Plan) least(of func(r *bench.Prediction) trace.Opt[float64]) (least *bench.Prediction, value trace.Opt[float64]) {
	for i := range p.Predictions {
		r := &p.Predictions[i]
		if v := of(r); v.Set && r.Verdict.Level != run.Invalid && (least == nil || v.Value < value.Value) {
			least, value = r, v
		}
	}
	return least, value
}

func (p Plan) foundHeadline(f *bench.Found) doc.KeyValue {
	h := doc.KeyValue{Key: upperFirst(p.nameOf(f)), Value: "none"}
	amount := func(level float64) string { return strings.Split(amountOf(f, level), " (")[0] }
	if f.Axis == bench.Engines && len(p.Found) == 1 {
		h.Key = "Engines needed"
	}
	var notes []string
	switch a := f.Answer; {
	case a.Found && f.Axis == bench.Concurrency:
		h.Value, h.Unit = doc.Int(int(a.Level)), "in flight"
	case a.Found:
		h = headline(h.Key, amount(a.Level), "")
		if !a.Limited && f.Axis != bench.Engines {
			notes = append(notes, "the highest load tried")
		}
	case f.Axis == bench.Engines:
		h.Unit = "of up to " + doc.Int(int(a.Missed)) + " engines"
	}
	if limits := p.shortfalls(f, false); len(limits) > 0 {
		notes = append(notes, amount(f.Answer.Missed)+": "+strings.Join(limits, ", "))
	}
	h.Note = strings.Join(notes, "; ")
	return h
}

func (p Plan) smallestHeadlines() (all []doc.KeyValue) {
	var limits []doc.KeyValue
	_, of := p.met()
	best := p.smallest()
	if best == nil {
		all = append(all, doc.KeyValue{Key: "Deployments that meet the objectives", Value: "none", Note: "of " + doc.Int(len(p.Predictions))})
		best = p.largest()
	} else {
		all = append(all, doc.KeyValue{Key: "Engines needed", Value: doc.Int(best.Total()), Unit: doc.Plural(best.Total(), "engine"), Note: PredictionName(best) + "; " + of})
	}
	if limit := p.nextSmaller(best); best.Met && limit != nil {
		j := run.Failed(limit.Judgements)[0]
		h := metricHeadline(j.Gate.Metric, j.Value, j.Gate.String())
		h.Key = "What limits " + PredictionName(limit) + ": " + lowerFirst(h.Key)
		limits = append(limits, h)
	}
	for _, j := range best.Judgements {
		all = append(all, metricHeadline(j.Gate.Metric, j.Value, fmt.Sprintf("%s; %v: %s", PredictionName(best), j.Gate, j.Word())))
	}
	if v := p.value(&best.Forecast, planThroughput); v.Set {
		all = append(all, metricHeadline(run.MustMetric(planThroughput), v, PredictionName(best)))
	}
	return append(all, limits...)
}

// nextSmaller returns the largest deployment of fewer engines that misses an objective, of
// several the one with the highest throughput; nil if there is none.
func (p Plan) nextSmaller(than *bench.Prediction) (next *bench.Prediction) {
	for i := range p.Predictions {
		r := &p.Predictions[i]
		if r.Total() >= than.Total() || len(run.Failed(r.Judgements)) == 0 {
			continue
		}
		if next == nil || cmp.Or(cmp.Compare(r.Total(), next.Total()), cmp.Compare(p.value(&r.Forecast, planThroughput).Value, p.value(&next.Forecast, planThroughput).Value)) > 0 {
			next = r
		}
	}
	return next
}

// facts says what was simulated.
func (p Plan) facts() []doc.KeyValue {
	facts := []doc.KeyValue{{Key: "Trace", Value: p.Trace + ", " + doc.Count(p.Requests, "request")}}
	if len(p.Gates) > 0 {
		var all []string
		for _, g := range p.Gates {
			all = append(all, g.String())
		}
		facts = append(facts, doc.KeyValue{Key: "Objectives", Value: strings.Join(all, ", ")})
	}
	return append(facts, doc.KeyValue{Key: "Simulated", Value: doc.Count(len(p.Predictions), "deployment")})
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
