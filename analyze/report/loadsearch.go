package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/replay/bench"
)

// LoadSearch is the report of searches for the largest load that meets objectives.
type LoadSearch struct {
	Subject string             // what all runs have in common, in one line
	Found   []*bench.FoundLoad // of each deployment and shape, at least one
	View    View               // its Gates are the objectives
}

// sweep returns the runs of each search by level.
func (s LoadSearch) sweep() Sweep {
	sweep := Sweep{Subject: s.Subject, Axis: s.Found[0].Axis, Percentiles: s.View.Percentiles}
	for _, f := range s.searches() {
		d := f.deployment()
		for _, l := range f.byLevel() {
			d.Points = append(d.Points, SweepPoint{Level: bench.FormatLevel(l.Level), Info: l.Run, Result: l.Metrics, Judgements: l.Judgements, Outcome: outcome(&l)})
		}
		sweep.Deployments = append(sweep.Deployments, d)
	}
	return sweep
}

// Document has the answers, a row for each run, and the objectives at each answer and at
// the load that limits it.
func (s LoadSearch) Document() *doc.Document {
	d := doc.New("LOAD SEARCH", s.Subject)
	lead := d.Section("")
	lead.Lead = true
	if len(s.Found) > 1 {
		lead.Table(s.answers())
	}
	sweep := s.sweep()
	sweep.addFigures(d.DetailSection("Throughput against latency"))
	d.Gates = &doc.Verdict{Level: "PASS"}
	for i, f := range s.searches() {
		d.Headlines = append(d.Headlines, f.headline())
		runs := d.Section(cmp.Or(f.name(), "Runs"))
		if len(s.Found) > 1 {
			runs.Text(f.text())
		} else {
			lead.Text(f.text())
		}
		runs.Table(sweep.table(sweep.Deployments[i]))
		f.judge(d.Gates)
	}
	d.Verdict = sweep.judge(d)
	d.Data = sweep.data()
	return d
}

func (s LoadSearch) searches() (all []foundLoad) {
	for _, f := range s.Found {
		all = append(all, foundLoad{f, s.View.Gates})
	}
	return all
}

// answers returns a row for each search, with the ratio to the first of its shape.
func (s LoadSearch) answers() doc.Table {
	t := doc.Table{Columns: []string{"Search", "Objectives met at", "Ratio", "Missed at", "Because"}, Left: doc.AllLeft}
	first := map[bench.Shape]float64{}
	for _, f := range s.searches() {
		load, met, ratio, missed, because := 0.0, "none", doc.Absent, doc.Absent, doc.Absent
		if a := f.Answer; a.Found {
			load, met = f.Load(a.Level), f.load(a.Level)
		}
		if base, known := first[f.Shape]; !known {
			first[f.Shape] = load
		} else if base > 0 && load > 0 {
			ratio = fmt.Sprintf("%.2fx, %+.1f %%", load/base, 100*(load/base-1))
		}
		if at := f.atLimit(); at != nil {
			missed, because = f.load(at.Level), f.shortfalls(at)
		}
		t.Add(f.name(), met, ratio, missed, because)
	}
	return t
}

// Failed returns the answers of searches in which no load meets the objectives.
func (s LoadSearch) Failed() (texts []string) {
	for _, f := range s.searches() {
		if f.outcome() != outcomeFail {
			continue
		}
		text := f.text()
		if f.name() != "" {
			text = f.name() + ": " + text
		}
		texts = append(texts, text)
	}
	return texts
}

// Outcome returns the outcome of the searches and their runs.
func (s LoadSearch) Outcome() OutcomeJSON {
	var runs Runs
	for _, f := range s.Found {
		for _, l := range f.Runs() {
			runs = append(runs, Run{Name: l.Name, Dir: l.Dir, Info: l.Run, Result: l.Metrics, View: s.View})
		}
	}
	all := runs.Outcome()
	all.Outcome = outcomePass
	for _, f := range s.searches() {
		all.Outcome = worse(all.Outcome, f.outcome())
		all.Searches = append(all.Searches, f.json())
	}
	return all
}

// WriteOutcome writes the outcome of the searches as one JSON object.
func (s LoadSearch) WriteOutcome(w io.Writer) error { return writeJSON(w, s.Outcome()) }

// JUnit writes JUnit XML: a test suite for each search, whose test case fails if no load
// meets the objectives.
func (s LoadSearch) JUnit(w io.Writer) error {
	var suites []junitSuite
	for _, f := range s.searches() {
		suites = append(suites, f.junit())
	}
	return writeJUnit(w, suites)
}

// LoadLine returns the result of a run of a search as one line of progress output.
func LoadLine(l bench.LoadLeg) string {
	var objectives []string
	for _, j := range l.Judgements {
		objectives = append(objectives, shortfall(j))
	}
	return fmt.Sprintf("%v: %s; %s; %v", l.Leg, outcome(&l), strings.Join(objectives, ", "), l.Metrics.Verdict.Level)
}
