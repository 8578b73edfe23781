package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/analyze/run"
	"moontide/replay/bench"
	"moontide/replay/runfile"
	"moontide/trace"
)

// Sweep holds the results of runs at several load levels, of one or more
// deployments.
type Sweep struct {
	// Subject describes in one line what all runs have in common.
	Subject     string
	Axis        bench.Axis
	Percentiles []float64 // of the latencies, in addition to the mean; nil is 99
	// Deployments are in order; those of one shape are compared with the first of them.
	Deployments []Deployment
}

// Deployment holds the runs against one endpoint with requests of one shape.
type Deployment struct {
	Label  string // may be "" if there is only one
	Shape  string // ISL:OSL, "" if there is only one
	Points []SweepPoint
}

// name returns the label and the shape.
func (d Deployment) name() string {
	isl, osl, _ := strings.Cut(d.Shape, ":")
	switch {
	case d.Shape == "":
		return d.Label
	case d.Label == "":
		return "ISL " + isl + ", OSL " + osl
	}
	return d.Label + ", ISL " + isl + ", OSL " + osl
}

// headline returns the key of a headline of the deployment.
func (d Deployment) headline(key string) string {
	if name := d.name(); name != "" {
		return name + ": " + lowerFirst(key)
	}
	return key
}

// unit follows a level.
func (s Sweep) unit() string {
	return map[bench.Axis]string{bench.Rate: "req/s", bench.Speedup: "times the trace's rate", bench.Concurrency: "in flight"}[s.Axis]
}

// heading is the name of the level, as a table's heading.
func (s Sweep) heading() string {
	switch s.Axis {
	case bench.Rate:
		return "Request Rate (req/s)"
	case bench.Speedup:
		return "Speedup"
	}
	return "Concurrency"
}

// SweepPoint is one run.
type SweepPoint struct {
	Level  string // the same in all deployments
	Info   runfile.Run
	Result *run.Result
	// Judgements are the results of the run's gates.
	Judgements []run.Judgement
	Outcome    string // of the gates in a search, in a word or two
}

// SweepLine returns the result of a run as one line of progress output.
func SweepLine(r *run.Result) string {
	value := func(key string) string { return twoDecimals(run.MustMetric(key).Value(r)) }
	line := fmt.Sprintf("%s: %s req/s, %s tok/s, mean E2EL %s ms, mean TTFT %s ms, mean TPOT %s ms, %d failed", r.Verdict.Level,
		value("request_throughput"), value("output_throughput"), value("mean_e2el_ms"), value("mean_ttft_ms"), value("mean_tpot_ms"), r.Failed)
	if r.Failed > 0 {
		line += ": " + failures(r)
	}
	return line
}

func failures(r *run.Result) string {
	var classes []string
	for _, class := range slices.Sorted(maps.Keys(r.Errors)) {
		text := fmt.Sprintf("%s %d", class, r.Errors[class])
		if example := r.Examples[class]; example != "" {
			text += " (" + example + ")"
		}
		classes = append(classes, text)
	}
	return doc.Clean(strings.Join(classes, ", "))
}

const notValid = "*"

func (p SweepPoint) mark() string {
	if p.Result.Verdict.Level != run.Valid {
		return p.Level + notValid
	}
	return p.Level
}

// Document has one table per deployment, a side-by-side table if there are several,
// and the worst verdict of all runs. Its Data has one row per run.
func (s Sweep) Document() *doc.Document {
	d := doc.New("LOAD SWEEP", s.Subject)
	s.addFigures(d.DetailSection("Throughput against latency"))
	for _, deployment := range s.Deployments {
		d.Section(deployment.name()).Table(s.table(deployment))
	}
	for _, same := range s.byShape() {
		if len(same) > 1 {
			d.Section("Side by side, with the ratio to " + same[0].name()).Table(s.sideBySide(same))
		}
	}
	d.Verdict = s.judge(d)
	d.Gates = s.gates()
	d.Data = s.data()
	return d
}

// table has a row for each run of a deployment.
func (s Sweep) table(d Deployment) doc.Table {
	t := doc.Table{Columns: s.columns()}
	for _, p := range d.Points {
		cells := s.row(p, nil)
		if p.Outcome != "" {
			cells = append(cells, p.Outcome)
		}
		t.Add(cells...)
	}
	if len(d.Points) > 0 && d.Points[0].Outcome != "" {
		t.Columns = append(t.Columns, "Objectives")
	}
	return t
}

// byShape returns the deployments of each shape.
func (s Sweep) byShape() (groups [][]Deployment) {
	for _, d := range s.Deployments {
		i := slices.IndexFunc(groups, func(g []Deployment) bool { return g[0].Shape == d.Shape })
		if i < 0 {
			i = len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], d)
	}
	return groups
}

// metrics returns those of the columns: beside a requested rate or speedup the rate at which
// requests were sent, and what gates limit.
func (s Sweep) metrics() (all []run.Metric) {
	if s.Axis != bench.Concurrency {
		all = append(all, run.MustMetric("achieved_rate"))
	}
	all = append(all, run.MustMetric("request_throughput"), run.MustMetric("output_throughput"))
	for _, l := range []run.Latency{run.E2EL, run.TTFT, run.TPOT} {
		for _, statistic := range (View{Percentiles: s.Percentiles}).statistics() {
			if statistic.Key != run.Median.Key {
				all = append(all, l.Metric(statistic))
			}
		}
	}
	for _, g := range s.gateMetrics() {
		if !slices.ContainsFunc(all, func(m run.Metric) bool { return m.Key == g.Key }) {
			all = append(all, g)
		}
	}
	return all
}

// gateMetrics returns what gates of the runs limit.
func (s Sweep) gateMetrics() (all []run.Metric) {
	for _, d := range s.Deployments {
		for _, p := range d.Points[:min(1, len(d.Points))] {
			for _, j := range p.Judgements {
				all = append(all, j.Gate.Metric)
			}
		}
	}
	return all
}

func (s Sweep) columns() []string {
	columns := []string{s.heading()}
	for _, m := range s.metrics() {
		columns = append(columns, m.Column())
	}
	return columns
}

// row returns the table row of a run; with a base, each value has its ratio to the
// base's and the change in percent.
func (s Sweep) row(p SweepPoint, base *run.Result) []string {
	cells := []string{p.mark()}
	for _, m := range s.metrics() {
		value := m.Value(p.Result)
		cell := twoDecimals(value)
		if base != nil {
			if of := m.Value(base); value.Set && of.Set && of.Value > 0 {
				ratio := value.Value / of.Value
				cell += fmt.Sprintf(" (%.2fx, %+.1f %%)", ratio, 100*(ratio-1))
			}
		}
		cells = append(cells, cell)
	}
	return cells
}

// twoDecimals omits thousands separators, like the published tables.
func twoDecimals(v trace.Opt[float64]) string {
	if !v.Set {
		return doc.Absent
	}
	return strconv.FormatFloat(v.Value, 'f', 2, 64)
}

func (s Sweep) sideBySide(same []Deployment) doc.Table {
	t := doc.Table{Columns: slices.Insert(s.columns(), 1, "Deployment"), Left: 2}
	for _, base := range same[0].Points {
		t.Add(slices.Insert(s.row(base, nil), 1, same[0].Label)...)
		for _, d := range same[1:] {
			for _, p := range d.Points {
				if p.Level == base.Level {
					t.Add(slices.Insert(s.row(p, base.Result), 1, d.Label)...)
				}
			}
		}
	}
	return t
}

// judge returns the worst verdict of all runs with its reasons, and adds notes on
// single runs.
func (s Sweep) judge(d *doc.Document) *doc.Verdict {
	worst, runs := run.Valid, 0
	v := &doc.Verdict{}
	var names []string
	var of []Run
	for _, deployment := range s.Deployments {
		for _, p := range deployment.Points {
			runs++
			r, where := p.Result, s.where(deployment, p)
			worst = max(worst, r.Verdict.Level)
			names, of = append(names, where), append(of, Run{Info: p.Info, Result: r})
			if r.Failed > 0 {
				d.Note("Warning", fmt.Sprintf("%s: %d of %d requests failed: %s.", where, r.Failed, r.Completed+r.Failed, failures(r)))
			}
			if r.Verdict.Level != run.Valid {
				v.Evidence = append(v.Evidence, doc.Evidence{Level: r.Verdict.Level.String(), Text: notValid + " " + where + ": " + strings.Join(r.Verdict.Reasons(), "; ")})
			}
		}
	}
	d.Notes = append(d.Notes, notesOf(names, of)...)
	v.Level = worst.String()
	v.Evidence = append([]doc.Evidence{{Level: v.Level, Text: "the worst of " + doc.Count(runs, "run")}}, v.Evidence...)
	return v
}

// gates returns the gates of all runs, nil if there are none.
func (s Sweep) gates() *doc.Verdict {
	var all []run.Judgement
	var evidence []doc.Evidence
	for _, d := range s.Deployments {
		for _, p := range d.Points {
			all = append(all, p.Judgements...)
			if v := gates(p.Judgements); v != nil {
				for _, e := range v.Evidence {
					evidence = append(evidence, doc.Evidence{Level: e.Level, Text: s.where(d, p) + ": " + e.Text})
				}
			}
		}
	}
	v := gates(all)
	if v != nil {
		v.Evidence = evidence
	}
	return v
}

// where names a run of the sweep.
func (s Sweep) where(d Deployment, p SweepPoint) string {
	where := s.heading() + " " + p.Level
	if name := d.name(); name != "" {
		where = name + ", " + where
	}
	return where
}

func (s Sweep) data() (data doc.Data) {
	labelled := len(s.Deployments) > 1 || s.Deployments[0].name() != ""
	shaped := slices.ContainsFunc(s.Deployments, func(d Deployment) bool { return d.Shape != "" })
	if labelled {
		data.Columns = append(data.Columns, "Deployment")
	}
	if shaped {
		data.Columns = append(data.Columns, "Shape")
	}
	data.Columns = slices.Concat(data.Columns, s.columns(), []string{"Successful Requests", "Failed Requests", "Verdict"})
	gated := s.gates() != nil
	if gated {
		data.Columns = append(data.Columns, "Gates")
	}
	for _, d := range s.Deployments {
		for _, p := range d.Points {
			var row []any
			if labelled {
				row = append(row, d.Label)
			}
			if shaped {
				row = append(row, d.Shape)
			}
			row = append(row, p.Level)
			for _, m := range s.metrics() {
				row = append(row, m.Value(p.Result))
			}
			row = append(row, p.Result.Completed, p.Result.Failed, p.Result.Verdict.Level)
			if gated {
				row = append(row, gateLevel(p.Judgements))
			}
			data.Add(row...)
		}
	}
	return data
}
