package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"moontide/analyze/measure"
	"moontide/analyze/report/doc"
	"moontide/analyze/slo"
	"moontide/replay/experiment"
	"moontide/trace"
)

// Set holds several runs that differ in named settings: a sweep over loads, a search for
// the largest load that meets objectives, or deployments simulated under one load. See
// [SweepOf], [SearchOf] and [PlanOf].
type Set struct {
	Title   string
	Subject string           // common to all runs, in one line
	Axis    string           // the setting that differs between the runs of a group
	Metrics []measure.Metric // the columns of its tables
	Gates   []slo.Gate
	// Incomplete says what is missing of a sweep that did not end.
	Incomplete []string
	// Groups are compared with the first group of the same shape.
	Groups []*Group
	// HeldOut has the errors of fitted engines on held-out measurements by metric, as
	// shares of the value.
	HeldOut map[string]float64
}

// Group holds the runs against one endpoint with requests of one shape.
type Group struct {
	Label  string // may be "" if there is only one
	Shape  string // ISL:OSL, "" if there is only one
	Points []*Point
	Found  *experiment.Answer // by the runs, in a search
}

// Point is one run.
type Point struct {
	AxisValue  string               // the same in all groups
	Values     []trace.Opt[float64] // of the metrics
	Judgements []slo.Judgement      // of the gates
	Outcome    string               // of the gates, in a search
	Run
}

// Deployments is the [Set.Axis] of deployments under one load.
const Deployments = "deployment"

// name returns the label and the shape.
func (g *Group) name() string {
	isl, osl, _ := strings.Cut(g.Shape, ":")
	switch {
	case g.Shape == "":
		return g.Label
	case g.Label == "":
		return "ISL " + isl + ", OSL " + osl
	}
	return g.Label + ", ISL " + isl + ", OSL " + osl
}

// headings are the names of levels, as headings of tables.
var headings = map[string]string{
	"rate": "Request Rate (req/s)", "session-rate": "Session Rate (1/s)", "speedup": "Speedup", "max-concurrency": "Concurrency", "max-sessions": "Sessions", Deployments: "Deployment",
}

// setMetrics returns the columns of a set: the achieved rate next to a requested rate or
// speedup, throughputs, latencies from the mean on, and the metrics of gates.
func setMetrics(axis string, v View) (all []measure.Metric) {
	var keys []string
	if axis != Deployments && !strings.HasPrefix(axis, "max-") {
		keys = append(keys, "achieved_rate")
	}
	keys = append(keys, "request_throughput", throughputKey)
	if axis == Deployments {
		keys = append(keys, "cached_share")
	}
	for _, l := range []measure.Latency{measure.E2EL, measure.TTFT, measure.TPOT} {
		for _, s := range v.statistics() {
			if s.Key != measure.Median.Key {
				keys = append(keys, l.Metric(s).Key)
			}
		}
	}
	for _, g := range v.Gates {
		keys = append(keys, g.Metric.Key)
	}
	for i, key := range keys {
		if !slices.Contains(keys[:i], key) {
			all = append(all, measure.MustMetric(key))
		}
	}
	return all
}

const notValid = "*"

func (p *Point) mark() string {
	if p.Result.Verdict.Level != measure.Valid {
		return p.AxisValue + notValid
	}
	return p.AxisValue
}

// value returns the value of a metric of the set.
func (s *Set) value(p *Point, key string) trace.Opt[float64] {
	for i, m := range s.Metrics {
		if m.Key == key {
			return p.Values[i]
		}
	}
	return trace.Opt[float64]{}
}

// Document has the answers of searches, figures, a table of each group, with the ratios to the
// first of its shape, and the worst verdict of all runs. Its Data has one row per run.
func (s Set) Document() *doc.Document {
	d := doc.New(s.Title, s.Subject)
	s.addAnswers(d)
	s.addFigures(d)
	for _, g := range s.Groups {
		base, title := s.Groups[slices.IndexFunc(s.Groups, func(of *Group) bool { return of.Shape == g.Shape })], cmp.Or(g.name(), "Runs")
		if base != g {
			title += ", with the ratio to " + base.name()
		}
		d.Section(title).Table(s.table(g, base))
	}
	s.addHeldOut(d)
	s.judge(d)
	s.addGates(d)
	s.addData(d)
	return d
}

// table has a row for each run of a group, with the ratio to the run of the base at the
// same level. The base itself has no ratios.
func (s *Set) table(g, base *Group) doc.Table {
	t := doc.Table{Columns: []string{headings[s.Axis]}}
	if s.Axis == Deployments {
		t.Left = 1
	}
	for _, m := range s.Metrics {
		t.Columns = append(t.Columns, m.Column())
	}
	for _, p := range g.Points {
		var of *Point
		if i := slices.IndexFunc(base.Points, func(of *Point) bool { return of.AxisValue == p.AxisValue }); i >= 0 && base != g {
			of = base.Points[i]
		}
		cells := s.row(p, of)
		if p.Outcome != "" {
			cells = append(cells, p.Outcome)
		}
		t.Add(cells...)
	}
	if len(g.Points) > 0 && g.Points[0].Outcome != "" {
		t.Columns = append(t.Columns, "Objectives")
	}
	return t
}

// row returns the table row of a run; with a base, each value has its ratio to the
// base's and the change in percent.
func (s *Set) row(p, base *Point) []string {
	cells := []string{p.mark()}
	for i, m := range s.Metrics {
		value := p.Values[i]
		cell := plainValue(m, value)
		if base != nil {
			if of := base.Values[i]; value.Set && of.Set && of.Value > 0 {
				ratio := value.Value / of.Value
				cell += fmt.Sprintf(" (%.2fx, %+.1f %%)", ratio, 100*(ratio-1))
			}
		}
		cells = append(cells, cell)
	}
	return cells
}

// points yields all runs with their names in the set.
func (s *Set) points(yield func(where string, p *Point) bool) {
	for _, g := range s.Groups {
		for _, p := range g.Points {
			where := p.AxisValue
			if s.Axis != Deployments {
				where = headings[s.Axis] + " " + where
			}
			if name := g.name(); name != "" {
				where = name + ", " + where
			}
			if !yield(where, p) {
				return
			}
		}
	}
}

// judge adds the notes on runs and the worst verdict of all with its reasons. A simulated
// deployment that is not VALID has a warning: it does not affect the others.
func (s *Set) judge(d *doc.Document) {
	worst := measure.Valid
	var reasons []doc.Evidence
	var runs Runs
	for where, p := range s.points {
		r := p.Result
		worst = max(worst, r.Verdict.Level)
		runs = append(runs, Run{Name: where, Info: p.Info, Result: r})
		if len(r.Errors) > 0 {
			d.Note("Warning", fmt.Sprintf("%s: %d of %d requests failed: %s.", where, r.Failed, r.Completed+r.Failed, failures(r)))
		}
		if r.Verdict.Level != measure.Valid {
			reasons = append(reasons, doc.Evidence{Level: r.Verdict.Level.String(), Text: notValid + " " + where + ": " + strings.Join(r.Verdict.Reasons(), "; ")})
		}
	}
	d.Notes = append(d.Notes, notesOf(runs)...)
	for _, text := range s.Incomplete {
		d.Note("Warning", text+".")
	}
	if s.Axis == Deployments {
		for _, e := range reasons {
			d.Note("Warning", e.Level+": "+e.Text+".")
		}
		return
	}
	d.Verdict = &doc.Verdict{Level: worst.String(), Evidence: []doc.Evidence{{Level: worst.String(), Text: "the worst of " + doc.Count(len(runs), "run")}}}
	d.Verdict.Evidence = append(d.Verdict.Evidence, reasons...)
}

func (s *Set) addData(d *doc.Document) {
	labelled := len(s.Groups) > 1 || s.Groups[0].name() != ""
	shaped := slices.ContainsFunc(s.Groups, func(g *Group) bool { return g.Shape != "" })
	for _, g := range s.Groups {
		for _, p := range g.Points {
			var columns []string
			var row []any
			add := func(some bool, column string, value any) {
				if some {
					columns, row = append(columns, column), append(row, value)
				}
			}
			add(labelled, "Deployment", g.Label)
			add(shaped, "Shape", g.Shape)
			add(true, headings[s.Axis], p.AxisValue)
			for i, m := range s.Metrics {
				add(true, m.Column(), p.Values[i])
			}
			add(true, "Successful Requests", p.Result.Completed)
			add(true, "Failed Requests", p.Result.Failed)
			add(true, "Verdict", p.Result.Verdict.Level)
			add(d.Gates != nil, "Gates", gateLevel(p.Judgements))
			d.Data.Columns = columns
			d.Data.Add(row...)
		}
	}
}

// addHeldOut adds the errors of the engines' fit, which runs have among their notes.
func (s *Set) addHeldOut(d *doc.Document) {
	var errors []string
	for _, m := range s.Metrics {
		if share, known := s.HeldOut[m.Key]; known {
			errors = append(errors, lowerFirst(m.Label)+" "+plusMinus(share))
		}
	}
	if errors != nil && s.Axis == Deployments {
		d.Note("Note", "nine in ten predictions of measurements that the engines were not fitted to had errors of at most: "+strings.Join(errors, ", ")+".")
	}
}

func plusMinus(share float64) string { return "±" + doc.Fixed(100*share, 0) + " %" }

// RunLine returns the result of a run of a set as one line of progress output.
func RunLine(r *measure.Result) string {
	value := func(key string) string { return twoDecimals(measure.MustMetric(key).Value(r)) }
	line := fmt.Sprintf("%s: %s req/s, %s tok/s, mean E2EL %s ms, mean TTFT %s ms, mean TPOT %s ms, %d failed", r.Verdict.Level,
		value("request_throughput"), value("output_throughput"), value("mean_e2el_ms"), value("mean_ttft_ms"), value("mean_tpot_ms"), r.Failed)
	if r.Failed > 0 {
		line += ": " + failures(r)
	}
	return line
}

func failures(r *measure.Result) string {
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

// plainValue formats a value for blocks and tables of published results, without thousands
// separators.
func plainValue(m measure.Metric, v trace.Opt[float64]) string {
	if v.Set && m.Unit == measure.Count {
		return strconv.Itoa(int(v.Value))
	}
	return twoDecimals(v)
}

// twoDecimals omits thousands separators, like the published tables.
func twoDecimals(v trace.Opt[float64]) string {
	if !v.Set {
		return doc.Absent
	}
	return strconv.FormatFloat(v.Value, 'f', 2, 64)
}
