package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/analyze/run"
	"moontide/replay/bench"
)

// LoadSearch is the report of a search for the largest load that meets objectives.
type LoadSearch struct {
	Subject string // what all runs have in common, in one line
	Found   *bench.FoundLoad
	Gates   []run.Gate // the objectives
}

// PNG draws throughput and latency of the runs.
func (s LoadSearch) PNG(w io.Writer) error { return s.sweep().PNG(w) }

// sweep returns the runs by level.
func (s LoadSearch) sweep() Sweep {
	legs := slices.Clone(s.Found.Legs)
	slices.SortStableFunc(legs, func(a, b bench.LoadLeg) int { return cmp.Compare(a.Level, b.Level) })
	d := Deployment{}
	for _, l := range legs {
		d.Label = l.Target.Label
		d.Points = append(d.Points, SweepPoint{Level: bench.FormatLevel(l.Level), Info: l.Run, Result: l.Metrics, Judgements: l.Judgements})
	}
	return Sweep{Subject: s.Subject, Axis: s.Found.Axis, Deployments: []Deployment{d}}
}

// Document has the answer, a row for each run, and the objectives at the answer and at
// the load that limits it.
func (s LoadSearch) Document() *doc.Document {
	d := doc.New("LOAD SEARCH", s.Subject)
	d.Headlines = s.headlines()
	lead := d.Section("")
	lead.Lead = true
	lead.Text(s.Answer())
	sweep := s.sweep()
	addSheet(d, sweep.sheet())
	d.Section("Runs").Table(s.table(sweep))
	d.Verdict = sweep.judge(d)
	d.Gates = s.gates()
	d.Data = sweep.data()
	return d
}

// Answer says what was found, how certain it is, and what limits it.
func (s LoadSearch) Answer() string {
	f := s.Found
	a := f.Answer
	var texts []string
	switch {
	case len(f.Legs) == 0:
		texts = append(texts, "No run could decide.")
	case !a.Found:
		texts = append(texts, "No load meets the objectives: not even "+s.load(a.Missed)+" does.")
	case !a.Limited && f.Stopped == "":
		texts = append(texts, "All loads meet the objectives, up to "+s.load(a.Level)+", the highest one tried.")
	case !a.Limited:
		texts = append(texts, "Loads up to "+s.load(a.Level)+" meet the objectives, and no higher one was measured.")
	case f.Axis == bench.Concurrency:
		texts = append(texts, fmt.Sprintf("The objectives are met up to %s (95 %% confidence interval %s to %s).",
			s.load(a.Level), doc.Fixed(a.From, 0), doc.Fixed(a.To, 0)))
	default:
		texts = append(texts, fmt.Sprintf("The objectives are met up to %s (95 %% confidence interval %s to %s).",
			s.load(a.Estimate), threeDigits(a.From), threeDigits(a.To)))
	}
	if limit := s.limit(); limit != "" {
		texts = append(texts, limit)
	}
	switch {
	case f.Stopped != "":
		texts = append(texts, "The search stopped early: "+f.Stopped+".")
	case !a.Complete:
		texts = append(texts, fmt.Sprintf("The search ended after %s: more would narrow the interval.", doc.Count(len(f.Legs), "run")))
	}
	if text := s.client(); text != "" {
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}

// LoadLine returns the result of a run of a search as one line of progress output.
func LoadLine(l bench.LoadLeg) string {
	return fmt.Sprintf("%v: %s; %s; %v", l.Leg, outcome(&l), shortfall(l.Tightest), l.Metrics.Verdict.Level)
}

// load names a level: "7.31 req/s", "speedup 2.2" or "concurrency 64".
func (s LoadSearch) load(level float64) string {
	switch s.Found.Axis {
	case bench.Rate:
		return threeDigits(level) + " req/s"
	case bench.Speedup:
		return "speedup " + threeDigits(level)
	}
	return "concurrency " + doc.Int(int(level))
}

func threeDigits(x float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	return bench.FormatLevel(rounded)
}

// limit says which objective fails at the lowest load that does not meet them.
func (s LoadSearch) limit() string {
	at := s.atLimit()
	if at == nil {
		return ""
	}
	text := fmt.Sprintf("At %s, ", s.load(at.Level))
	if failed := run.Failed(at.Judgements); len(failed) > 0 {
		var each []string
		for _, j := range failed {
			each = append(each, shortfall(j))
		}
		text += strings.Join(each, " and ")
	} else {
		text += "the objectives are still met in the run"
	}
	if at.Growth > 0 {
		text += fmt.Sprintf(", and the queue grows by %.2g requests per second", at.Growth)
	}
	return text + "."
}

// shortfall says what an objective misses: "p99 TTFT is 2.31 s (p99_ttft_ms<2000 must
// hold)".
func shortfall(j run.Judgement) string {
	if !j.Value.Set {
		return j.String()
	}
	text := fmt.Sprintf("%s is %s (%v)", lowerFirst(j.Gate.Metric.Label), planCell(j.Gate.Metric, j.Value), j.Gate)
	if j.Remark != "" {
		text += ": " + j.Remark
	}
	return text
}

func (s LoadSearch) atLimit() *bench.LoadLeg {
	if !s.Found.Answer.Limited {
		return nil
	}
	return s.worst(s.Found.Answer.Missed)
}

// worst returns the run at a level that is the furthest from its objectives.
func (s LoadSearch) worst(level float64) (worst *bench.LoadLeg) {
	for i := range s.Found.Legs {
		if l := &s.Found.Legs[i]; l.Level == level && (worst == nil || l.Excess > worst.Excess) {
			worst = l
		}
	}
	return worst
}

// client says what the client could still do, if no load was too much.
func (s LoadSearch) client() string {
	f := s.Found
	if f.Answer.Limited || !f.Answer.Found {
		return ""
	}
	at := f.At(f.Answer.Level)
	if client := at.Metrics.Samples.Client; client.Samples > 0 {
		return fmt.Sprintf("There the client used %.0f %% of its CPU and sent with a p99 lag of %s (verdict %s).",
			100*client.MachineShare.Mean, doc.Duration(at.Metrics.ClientLag.Quantile(0.99)), at.Metrics.Verdict.Level)
	}
	return ""
}

func (s LoadSearch) table(sweep Sweep) doc.Table {
	t := doc.Table{Columns: []string{sweep.heading()}}
	rate := run.MustMetric("achieved_rate")
	if s.Found.Axis != bench.Concurrency {
		t.Columns = append(t.Columns, rate.Column())
	}
	t.Columns = append(t.Columns, "Requests")
	for _, g := range s.Gates {
		t.Columns = append(t.Columns, g.Metric.Heading())
	}
	t.Columns = append(t.Columns, "Objectives")
	legs := slices.Clone(s.Found.Legs)
	slices.SortStableFunc(legs, func(a, b bench.LoadLeg) int { return cmp.Compare(a.Level, b.Level) })
	for i, l := range legs {
		cells := []string{sweep.Deployments[0].Points[i].mark()}
		if s.Found.Axis != bench.Concurrency {
			cells = append(cells, twoDecimals(rate.Value(l.Metrics)))
		}
		cells = append(cells, doc.Int(l.Metrics.Completed+l.Metrics.Failed))
		for _, g := range s.Gates {
			cells = append(cells, planCell(g.Metric, g.Metric.Value(l.Metrics)))
		}
		t.Add(append(cells, outcome(&l))...)
	}
	return t
}

func outcome(l *bench.LoadLeg) string {
	switch {
	case l.Met():
		return "met"
	case l.Growth > 0:
		return "queue grows"
	}
	return "missed"
}

// gates returns PASS if a load meets the objectives, with their values there and at the
// load that limits it.
func (s LoadSearch) gates() *doc.Verdict {
	v := &doc.Verdict{Level: "PASS"}
	a := s.Found.Answer
	if !a.Found {
		v.Level = "FAIL"
	} else {
		s.addEvidence(v, s.Found.At(a.Level))
	}
	s.addEvidence(v, s.atLimit())
	return v
}

func (s LoadSearch) addEvidence(v *doc.Verdict, l *bench.LoadLeg) {
	if l == nil {
		return
	}
	for _, j := range l.Judgements {
		v.Evidence = append(v.Evidence, doc.Evidence{Level: strings.ToUpper(j.Word()), Text: s.load(l.Level) + ": " + j.String()})
	}
}
