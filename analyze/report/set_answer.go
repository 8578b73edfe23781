package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"moontide/analyze/measure"
	"moontide/analyze/report/doc"
	"moontide/analyze/slo"
	"moontide/replay/experiment"
	"moontide/replay/runfile"
	"moontide/replay/settings"
	"moontide/trace"
	"moontide/trace/stats"
)

// searched reports whether the set is the result of load searches.
func (s *Set) searched() bool { return s.Groups[0].Found != nil }

// addAnswers adds the results of searches: a paragraph for one, a table for several.
func (s *Set) addAnswers(d *doc.Document) {
	if !s.searched() {
		return
	}
	lead := d.Section("Answer")
	lead.Lead = true
	if len(s.Groups) > 1 {
		lead.Table(s.answers())
	}
	for _, g := range s.Groups {
		d.Headlines = append(d.Headlines, g.headline())
		lead.Text(g.answer())
	}
}

// answers returns a row for each search, with the ratio to the first of its shape.
func (s *Set) answers() doc.Table {
	t := doc.Table{Columns: []string{"Search", "Objectives met at", "Ratio", "Missed at"}, Left: doc.AllLeft}
	first := map[string]float64{}
	for _, g := range s.Groups {
		load, met, ratio, missed := 0.0, "none", doc.Absent, doc.Absent
		if a := g.Found.Answer; a.Found {
			load, met = g.Found.Load(a.Level), g.load(a.Level)
		}
		if base, known := first[g.Shape]; !known {
			first[g.Shape] = load
		} else if base > 0 && load > 0 {
			ratio = fmt.Sprintf("%.2fx, %+.1f %%", load/base, 100*(load/base-1))
		}
		if at := g.atLimit(); at != nil {
			missed = g.load(at.Level())
		}
		t.Add(g.name(), met, ratio, missed)
	}
	return t
}

// outcome is fail if no load meets the objectives.
func (g *Group) outcome() string {
	switch f := g.Found; {
	case f.Failed:
		return outcomeIncomplete
	case f.Invalid != nil:
		return outcomeInvalid
	case !f.Answer.Found:
		return outcomeFail
	}
	return outcomePass
}

// answer states the result of a search, its certainty and its limit. If there are several
// searches, it begins with the name.
func (g *Group) answer() string {
	f := g.Found
	a := f.Answer
	var texts []string
	switch {
	case !a.Found && f.Invalid != nil:
		texts = append(texts, "No run gave an answer.")
	case !a.Found:
		texts = append(texts, "No load meets the objectives: not even "+g.load(a.Missed)+" does.")
	case !a.Limited && f.Stopped == "" && !f.Failed:
		texts = append(texts, "All loads tried meet the objectives, up to "+g.load(a.Level)+", the highest one.")
	case !a.Limited:
		texts = append(texts, "Loads up to "+g.load(a.Level)+" meet the objectives; no higher load was measured.")
	default:
		texts = append(texts, "The objectives are met at "+g.load(a.Level)+" and missed at "+g.load(a.Missed)+".")
	}
	if at := g.atLimit(); at != nil {
		texts = append(texts, "At "+g.load(at.Level())+", "+shortfalls(at)+".")
	}
	switch {
	case f.Stopped != "":
		texts = append(texts, "The search stopped early: "+f.Stopped+".")
	case !a.Complete:
		texts = append(texts, fmt.Sprintf("The search ended after %s; more runs would narrow the interval.", doc.Count(len(f.Trials), "run")))
	}
	text := strings.Join(texts, " ")
	if name := g.name(); name != "" {
		return name + ": " + lowerFirst(text)
	}
	return text
}

// load names a level: "7.31 req/s", "speedup 2.2", "concurrency 64", or, for a rate that was
// not reached, "4.1 req/s (of 8)".
func (g *Group) load(level float64) string {
	switch f := g.Found; {
	case f.Setting == "rate" && f.Load(level) != level:
		return threeDigits(f.Load(level)) + " req/s (of " + threeDigits(level) + ")"
	case f.Setting == "rate":
		return threeDigits(level) + " req/s"
	}
	return runfile.LoadName(g.Found.Setting) + " " + threeDigits(level)
}

// threeDigits rounds all but whole numbers.
func threeDigits(x float64) string {
	if x == math.Trunc(x) {
		return doc.Int(int(x))
	}
	return settings.FormatNumber(stats.Significant(x, 3))
}

// shortfalls lists the objectives that a run misses, or why it is INVALID.
func shortfalls(l *experiment.Trial) string {
	if v := l.Metrics.Verdict; v.Level == measure.Invalid {
		return "the run is INVALID: " + v.Reasons()[0]
	}
	var each []string
	for _, j := range slo.Failed(l.Judgements) {
		each = append(each, shortfall(j))
	}
	if l.Growth > 0 {
		each = append(each, fmt.Sprintf("the queue grows by %.2g requests per second", l.Growth))
	}
	return strings.Join(each, " and ")
}

// shortfall describes a missed objective: "p99 TTFT is 2.31 s (p99_ttft_ms<2000 must
// hold)".
func shortfall(j slo.Judgement) string {
	if !j.Value.Set {
		return j.String()
	}
	text := fmt.Sprintf("%s is %s (%v)", lowerFirst(j.Gate.Metric.Label), unitValue(j.Gate.Metric, j.Value), j.Gate)
	if j.Remark != "" {
		text += ": " + j.Remark
	}
	return text
}

// unitValue formats a value with its unit for a sentence.
func unitValue(m measure.Metric, v trace.Opt[float64]) string {
	switch {
	case m.Unit == measure.Milliseconds:
		return doc.Duration(v.Value)
	case m.Unit == measure.Seconds:
		return doc.Duration(1000 * v.Value)
	case m.Unit == measure.Share:
		return doc.Fixed(100*v.Value, 1) + " %"
	}
	return strings.TrimSpace(threeDigits(v.Value) + " " + string(m.Unit))
}

// lowerFirst lowers the first letter of a word that is not an abbreviation.
func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func (g *Group) atLimit() *experiment.Trial {
	if !g.Found.Answer.Limited {
		return nil
	}
	return g.Found.At(g.Found.Answer.Missed)
}

func trialOutcome(l *experiment.Trial) string {
	switch {
	case l.Metrics.Verdict.Level == measure.Invalid:
		return "undecided"
	case l.Met():
		return "met"
	case l.Growth > 0:
		return "queue grows"
	}
	return "missed"
}

// headline is the answer.
func (g *Group) headline() doc.KeyValue {
	a, h := g.Found.Answer, doc.KeyValue{Key: "Load that meets the objectives", Value: "unknown"}
	switch {
	case !a.Found && a.Limited:
		h.Value, h.Note = "none", "not even "+g.load(a.Missed)
	case a.Found:
		unit := map[string]string{"rate": "req/s", "session-rate": "sessions/s", "speedup": "times the trace's rate", "max-concurrency": "in flight", "max-sessions": "sessions"}[g.Found.Setting]
		h = doc.KeyValue{Key: "Meets the objectives up to", Value: threeDigits(g.Found.Load(a.Level)), Unit: unit, Note: "the highest load tried"}
	}
	if a.Found && a.Limited {
		h.Note = "missed at " + g.load(a.Missed) + ": " + shortfalls(g.atLimit())
	}
	if name := g.name(); name != "" {
		h.Key = name + ": " + lowerFirst(h.Key)
	}
	return h
}

// addGates adds the outcome of the gates: of all runs of a sweep, at the answers and limits
// of searches, or of the smallest deployment that passes all.
func (s *Set) addGates(d *doc.Document) {
	if len(s.Gates) == 0 {
		return
	}
	d.Gates = &doc.Verdict{Level: passLevel(len(s.FailedGates()) == 0)}
	add := func(where string, judgements []slo.Judgement, failed string) {
		for _, j := range judgements {
			d.Gates.Evidence = append(d.Gates.Evidence, gateEvidence(where+": ", j, failed))
		}
	}
	switch {
	case s.searched():
		for _, g := range s.Groups {
			failed, at := "LIMIT", []*experiment.Trial{g.atLimit()}
			if g.Found.Answer.Found {
				at = []*experiment.Trial{g.Found.At(g.Found.Answer.Level), at[0]}
			} else {
				d.Gates.Level, failed = "FAIL", "FAIL"
			}
			for _, l := range at {
				if l != nil {
					add(strings.TrimPrefix(g.name()+", "+g.load(l.Level()), ", "), l.Judgements, failed)
				}
			}
		}
	case s.Axis == Deployments:
		smallest, met := s.smallest()
		d.Gates.Evidence = append(d.Gates.Evidence, doc.Evidence{Level: d.Gates.Level, Text: fmt.Sprintf("%d of %s meet the objectives", met, doc.Count(len(s.Groups[0].Points), "deployment"))})
		add(smallest.AxisValue+map[bool]string{true: ", the smallest", false: ", the largest"}[met > 0], smallest.Judgements, "FAIL")
		for i, j := range smallest.Judgements {
			if share, known := s.HeldOut[j.Gate.Metric.Key]; known {
				d.Gates.Evidence[1+i].Text += ", " + plusMinus(share) + " by the held-out rows"
			}
		}
	default:
		for where, p := range s.points {
			add(where, p.Judgements, "FAIL")
		}
	}
}

// smallest returns the smallest deployment that meets the gates, of several the one with the
// highest throughput, or the largest if none does, and the number of those that do.
func (s *Set) smallest() (best *Point, met int) {
	points := s.Groups[0].Points
	engines := func(p *Point) float64 { return s.value(p, enginesKey).Value }
	for _, p := range points {
		if p.Outcome != "met" {
			continue
		}
		if met++; met == 1 || cmp.Or(cmp.Compare(engines(best), engines(p)), cmp.Compare(s.value(p, throughputKey).Value, s.value(best, throughputKey).Value)) > 0 {
			best = p
		}
	}
	if met == 0 {
		best = slices.MaxFunc(points, func(a, b *Point) int { return cmp.Compare(engines(a), engines(b)) })
	}
	return best, met
}

// FailedGates lists failures of gates: searches without an answer, a plan without a passing
// deployment, or runs of a sweep.
func (s *Set) FailedGates() (texts []string) {
	switch {
	case s.searched():
		for _, g := range s.Groups {
			if g.outcome() == outcomeFail {
				texts = append(texts, g.answer())
			}
		}
	case s.Axis == Deployments:
		if _, met := s.smallest(); met == 0 && len(s.Gates) > 0 {
			texts = append(texts, "no deployment meets the objectives")
		}
	default:
		for where, p := range s.points {
			for _, j := range slo.Failed(p.Judgements) {
				texts = append(texts, where+": "+j.String())
			}
		}
	}
	return texts
}
