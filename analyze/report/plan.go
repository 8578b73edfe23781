package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/analyze/run"
	"moontide/replay/bench"
	"moontide/replay/runfile"
	"moontide/trace"
)

// Plan holds what several deployments would do with a trace.
type Plan struct {
	Trace       string       // name
	Requests    int          // of the trace
	Metrics     []run.Metric // of the predictions: see [PlanMetrics]
	Gates       []run.Gate
	Predictions []bench.Prediction
	Notes       []string // on the trace
	// HeldOut has the errors of fitted engines on held-out measurements by metric, as
	// shares of the value.
	HeldOut map[string]float64
}

// planThroughput is the metric that is also shown per engine.
const planThroughput = "output_throughput"

// PlanMetrics returns the metrics that a plan shows: throughput, the share of cached
// tokens, mean and percentiles of latencies, and those that gates limit.
func PlanMetrics(v View) (all []run.Metric) {
	keys := []string{planThroughput, "cached_share"}
	for _, l := range []run.Latency{run.TTFT, run.TPOT, run.E2EL} {
		for _, s := range v.statistics() {
			if s.Key != run.Median.Key {
				keys = append(keys, l.Metric(s).Key)
			}
		}
	}
	for _, g := range v.Gates {
		keys = append(keys, g.Metric.Key)
	}
	for i, key := range keys {
		if !slices.Contains(keys[:i], key) {
			all = append(all, run.MustMetric(key))
		}
	}
	return all
}

// Document contains a table of deployments, figures, and the objectives of the smallest
// deployment that meets them. Its Data has one row per deployment.
func (p Plan) Document() *doc.Document {
	d := doc.New("DEPLOYMENT PLAN", fmt.Sprintf("%s, %s, simulated in virtual time", p.Trace, doc.Count(p.Requests, "request")))
	p.addFigures(d)
	d.Section("Deployments").Table(p.table())
	p.addHeldOut(d)
	p.addNotes(d)
	d.Gates = p.gates()
	d.Data = p.data()
	return d
}

// value returns the value of a metric.
func (p Plan) value(f *bench.Forecast, key string) trace.Opt[float64] {
	for i, m := range p.Metrics {
		if m.Key == key {
			return f.Values[i]
		}
	}
	return trace.Opt[float64]{}
}

// markOf names a deployment, with a mark if its run is not VALID.
func markOf(r *bench.Prediction) string {
	if r.Verdict.Level != run.Valid {
		return r.Name() + notValid
	}
	return r.Name()
}

func (p Plan) table() doc.Table {
	t := doc.Table{Columns: []string{"Deployment"}, Left: 1}
	if len(p.Gates) > 0 {
		t.Columns = append(t.Columns, "Objectives")
	}
	t.Columns = append(t.Columns, "Engines")
	for _, m := range p.Metrics {
		if t.Columns = append(t.Columns, planHeading(m)); m.Key == planThroughput {
			t.Columns = append(t.Columns, "tok/s per engine")
		}
	}
	t.Columns = append(t.Columns, "Mean queue")
	for i := range p.Predictions {
		r := &p.Predictions[i]
		cells := []string{markOf(r)}
		if len(p.Gates) > 0 {
			cells = append(cells, metLevel(r.Met))
		}
		cells = append(cells, doc.Int(r.Total()))
		for k, m := range p.Metrics {
			if cells = append(cells, planCell(m, r.Values[k])); m.Key == planThroughput {
				cells = append(cells, planCell(m, r.PerEngine(r.Values[k])))
			}
		}
		t.Add(append(cells, durationOr(r.MeanQueue()))...)
	}
	return t
}

func metLevel(met bool) string {
	if met {
		return "PASS"
	}
	return "FAIL"
}

// planHeading returns a short heading; cells have units where they differ.
func planHeading(m run.Metric) string {
	switch {
	case m.Key == planThroughput:
		return "tok/s"
	case m.Key == "cached_share":
		return "Cached"
	case m.Unit == run.Milliseconds || m.Unit == run.Seconds:
		return m.Label
	}
	return m.Heading()
}

func planCell(m run.Metric, v trace.Opt[float64]) string {
	switch {
	case !v.Set:
		return doc.Absent
	case m.Unit == run.Milliseconds:
		return doc.Duration(v.Value)
	case m.Unit == run.Seconds:
		return doc.Duration(1000 * v.Value)
	case m.Unit == run.Share:
		return doc.Fixed(100*v.Value, 1) + " %"
	case m.Unit == run.Count || v.Value >= 1000:
		return doc.Fixed(v.Value, 0)
	}
	return strconv.FormatFloat(v.Value, 'g', 3, 64)
}

func durationOr(ms trace.Opt[float64]) string {
	if !ms.Set {
		return doc.Absent
	}
	return doc.Duration(ms.Value)
}

// addHeldOut adds the errors of the engines' fit.
func (p Plan) addHeldOut(d *doc.Document) {
	t := doc.Table{Columns: []string{"Metric", "Error of nine in ten predictions"}, Left: 1}
	for _, m := range p.Metrics {
		if text := p.heldOut(m); text != "" {
			t.Add(m.Label, "up to "+text)
		}
	}
	if t.Rows == nil {
		return
	}
	s := d.Section("Errors on held-out measurements")
	s.Text("Measurements that the engines were not fitted to were predicted with these errors.")
	s.Table(t)
}

// heldOut returns the held-out error of a metric, such as "±15 %", "" if it is not known.
func (p Plan) heldOut(m run.Metric) string {
	share, known := p.HeldOut[m.Key]
	if !known {
		return ""
	}
	return "±" + doc.Fixed(100*share, 0) + " %"
}

// addNotes adds what is to be known about the predictions.
func (p Plan) addNotes(d *doc.Document) {
	d.Notes = append(d.Notes, simulatedNotes(runfile.Target{Virtual: true})...)
	if slices.ContainsFunc(p.Predictions, func(r bench.Prediction) bool { return r.Disaggregated() }) {
		d.Note("Note", "3P+2D is a deployment of 3 prefill and 2 decode engines.")
	}
	for _, n := range p.Notes {
		d.Note("Note", n+".")
	}
	for i := range p.Predictions {
		if r := &p.Predictions[i]; r.Verdict.Level != run.Valid {
			d.Note("Warning", fmt.Sprintf("%s%s: %s: %s.", notValid, r.Name(), r.Verdict.Level, strings.Join(r.Verdict.Reasons(), "; ")))
		}
	}
	p.addWarnings(d)
}

// addWarnings adds the warnings about the predictions, each once.
func (p Plan) addWarnings(d *doc.Document) {
	const most = 5
	var texts []string
	for i := range p.Predictions {
		for _, text := range p.Predictions[i].Warnings {
			if !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	for _, text := range texts[:min(most, len(texts))] {
		d.Note("Warning", text+".")
	}
	if n := len(texts) - most; n > 0 {
		d.Note("Warning", doc.Count(n, "more warning")+" like the last.")
	}
}

// met reports whether a deployment meets the gates, and says how many do.
func (p Plan) met() (some bool, text string) {
	met := 0
	for i := range p.Predictions {
		if p.Predictions[i].Met {
			met++
		}
	}
	return met > 0, fmt.Sprintf("%d of %s meet the objectives", met, doc.Count(len(p.Predictions), "deployment"))
}

// smallest returns the smallest deployment that meets the gates; of several, the one
// with the highest throughput. It returns nil if there is none.
func (p Plan) smallest() *bench.Prediction {
	var best *bench.Prediction
	for i := range p.Predictions {
		r := &p.Predictions[i]
		if !r.Met {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(best.Total(), r.Total()), cmp.Compare(p.value(&r.Forecast, planThroughput).Value, p.value(&best.Forecast, planThroughput).Value)) > 0 {
			best = r
		}
	}
	return best
}

func (p Plan) largest() *bench.Prediction {
	largest := slices.MaxFunc(p.Predictions, func(a, b bench.Prediction) int { return cmp.Compare(a.Total(), b.Total()) })
	return &largest
}

// Met reports whether a deployment meets the objectives, or there are none.
func (p Plan) Met() bool { return len(p.Gates) == 0 || p.smallest() != nil }

// gates returns whether a deployment meets the gates, with the values of the smallest
// one that does, or of the largest deployment if there is none.
func (p Plan) gates() *doc.Verdict {
	if len(p.Gates) == 0 || len(p.Predictions) == 0 {
		return nil
	}
	some, text := p.met()
	v := &doc.Verdict{Level: metLevel(some)}
	v.Evidence = append(v.Evidence, doc.Evidence{Level: v.Level, Text: text})
	shown, what := p.smallest(), "smallest"
	if shown == nil {
		shown, what = p.largest(), "largest"
	}
	for _, j := range shown.Judgements {
		e := gateEvidence(shown.Name()+", the "+what+": ", j, "FAIL")
		if heldOut := p.heldOut(j.Gate.Metric); heldOut != "" {
			e.Text += ", " + heldOut + " by the held-out rows"
		}
		v.Evidence = append(v.Evidence, e)
	}
	return v
}

// objective returns the condition of a gate, after "not" if it must not hold.
func objective(g run.Gate) string {
	if g.Forbidden {
		return "not " + g.Condition.String()
	}
	return g.Condition.String()
}

func (p Plan) data() (data doc.Data) {
	data.Columns = []string{"deployment", "engines", "prefill_engines", "decode_engines", "routing", "variant", "offered_rate"}
	for _, m := range p.Metrics {
		if data.Columns = append(data.Columns, m.Key); m.Key == planThroughput {
			data.Columns = append(data.Columns, planThroughput+"_per_engine")
		}
	}
	data.Columns = append(data.Columns, "mean_queue_ms", "completed", "failed", "verdict")
	if len(p.Gates) > 0 {
		data.Columns = append(data.Columns, "gates")
	}
	for i := range p.Predictions {
		data.Add(p.dataRow(&p.Predictions[i])...)
	}
	return data
}

func (p Plan) dataRow(r *bench.Prediction) []any {
	row := []any{r.Name(), r.Total(), r.Prefill, r.Decode, r.Routing, r.Variant, r.OfferedRate}
	for k, m := range p.Metrics {
		if row = append(row, r.Values[k]); m.Key == planThroughput {
			row = append(row, r.PerEngine(r.Values[k]))
		}
	}
	row = append(row, r.MeanQueue(), r.Completed, r.Failed, r.Verdict.Level)
	if len(p.Gates) > 0 {
		row = append(row, metLevel(r.Met))
	}
	return row
}
