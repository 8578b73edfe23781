package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"moontide/analyze/report/doc"
	"moontide/analyze/run"
	"moontide/replay/bench"
)

// foundLoad is one search and its objectives.
type foundLoad struct {
	*bench.FoundLoad
	gates []run.Gate
}

// deployment has no points yet.
func (f foundLoad) deployment() Deployment {
	return Deployment{Label: f.Target.Label, Shape: f.Shape.String()}
}

// name is "" if there is no other search.
func (f foundLoad) name() string { return f.deployment().name() }

func (f foundLoad) byLevel() []bench.LoadLeg {
	return slices.SortedStableFunc(slices.Values(f.Runs()), func(a, b bench.LoadLeg) int { return cmp.Compare(a.Level, b.Level) })
}

// outcome is fail if no load meets the objectives.
func (f foundLoad) outcome() string {
	switch {
	case f.Failed:
		return outcomeIncomplete
	case f.Invalid != nil:
		return outcomeInvalid
	case !f.Answer.Found:
		return outcomeFail
	}
	return outcomePass
}

// text says what was found, how certain it is, and what limits it.
func (f foundLoad) text() string {
	a := f.Answer
	var texts []string
	switch {
	case len(f.Legs) == 0:
		texts = append(texts, "No run gave an answer.")
	case !a.Found:
		texts = append(texts, "No load meets the objectives: not even "+f.load(a.Missed)+" does.")
	case !a.Limited && f.Stopped == "" && !f.Failed:
		texts = append(texts, "All loads tried meet the objectives, up to "+f.load(a.Level)+", the highest one.")
	case !a.Limited:
		texts = append(texts, "Loads up to "+f.load(a.Level)+" meet the objectives; no higher load was measured.")
	default:
		texts = append(texts, "The objectives are met at "+f.load(a.Level)+" and missed at "+f.load(a.Missed)+".")
	}
	if at := f.atLimit(); at != nil {
		texts = append(texts, "At "+f.load(at.Level)+", "+f.shortfalls(at)+".")
	}
	switch {
	case f.Stopped != "":
		texts = append(texts, "The search stopped early: "+f.Stopped+".")
	case !a.Complete:
		texts = append(texts, fmt.Sprintf("The search ended after %s; more runs would narrow the interval.", doc.Count(len(f.Legs), "run")))
	}
	return strings.Join(texts, " ")
}

// load names a level: "7.31 req/s", "speedup 2.2" or "concurrency 64". A rate that was not
// reached is beside what was offered: "4.1 req/s (of 8)".
func (f foundLoad) load(level float64) string {
	switch offered := f.Load(level); {
	case f.Axis == bench.Rate && offered != level:
		return threeDigits(offered) + " req/s (of " + threeDigits(level) + ")"
	case f.Axis == bench.Rate:
		return threeDigits(level) + " req/s"
	case f.Axis == bench.Speedup:
		return "speedup " + threeDigits(level)
	}
	return "concurrency " + doc.Int(int(level))
}

// threeDigits rounds all but whole numbers.
func threeDigits(x float64) string {
	if x == math.Trunc(x) {
		return doc.Int(int(x))
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	return bench.FormatLevel(rounded)
}

// shortfalls says which objectives a run misses.
func (f foundLoad) shortfalls(l *bench.LoadLeg) string {
	var each []string
	for _, j := range run.Failed(l.Judgements) {
		each = append(each, shortfall(j))
	}
	if l.Growth > 0 {
		each = append(each, fmt.Sprintf("the queue grows by %.2g requests per second", l.Growth))
	}
	return strings.Join(each, " and ")
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

func (f foundLoad) atLimit() *bench.LoadLeg {
	if !f.Answer.Limited {
		return nil
	}
	return f.At(f.Answer.Missed)
}

func outcome(l *bench.LoadLeg) string {
	switch {
	case l.Metrics.Verdict.Level == run.Invalid:
		return "undecided"
	case l.Met():
		return "met"
	case l.Growth > 0:
		return "queue grows"
	}
	return "missed"
}

// judge adds the objectives at the answer and at the load that limits it to a verdict,
// which is FAIL if no load meets them.
func (f foundLoad) judge(v *doc.Verdict) {
	failed, at := "LIMIT", []*bench.LoadLeg{f.atLimit()}
	if f.Answer.Found {
		at = []*bench.LoadLeg{f.At(f.Answer.Level), at[0]}
	} else {
		v.Level, failed = "FAIL", "FAIL"
	}
	for _, l := range at {
		if l == nil {
			continue
		}
		where := f.load(l.Level)
		if name := f.name(); name != "" {
			where = name + ", " + where
		}
		for _, j := range l.Judgements {
			v.Evidence = append(v.Evidence, gateEvidence(where+": ", j, failed))
		}
	}
}

// headline is the answer.
func (f foundLoad) headline() doc.KeyValue {
	a, key := f.Answer, f.deployment().headline
	switch {
	case !a.Found && a.Limited:
		return doc.KeyValue{Key: key("Load that meets the objectives"), Value: "none", Note: "not even " + f.load(a.Missed)}
	case !a.Found:
		return doc.KeyValue{Key: key("Load that meets the objectives"), Value: "unknown"}
	}
	h := doc.KeyValue{Key: key("Meets the objectives up to"), Value: threeDigits(f.Load(a.Level)), Unit: Sweep{Axis: f.Axis}.unit(), Note: "the highest load tried"}
	if a.Limited {
		h.Note = "missed at " + f.load(a.Missed) + ": " + f.shortfalls(f.atLimit())
	}
	return h
}

// json returns the outcome of the search.
func (f foundLoad) json() OutcomeSearchJSON {
	j := OutcomeSearchJSON{
		Find: string(f.Axis), Deployment: f.Target.Label, Shape: f.Shape.String(), Outcome: f.outcome(), Complete: f.Answer.Complete,
		Text: f.text(), Gates: []GateJSON{}, Runs: []string{},
	}
	if a := f.Answer; a.Found {
		load := f.Load(a.Level)
		j.Load = &load
	}
	if a := f.Answer; a.Limited {
		missed := f.Load(a.Missed)
		j.MissedAt, j.Gates = &missed, gateObjects(f.atLimit().Judgements)
	}
	for _, l := range f.Runs() {
		j.Runs = append(j.Runs, l.Name)
	}
	return j
}

func (f foundLoad) junit() junitSuite {
	var conditions []string
	for _, g := range f.gates {
		conditions = append(conditions, g.String())
	}
	s := junitSuite{Name: cmp.Or(f.name(), "search")}
	seconds, runs := 0.0, f.Runs()
	for i := range runs {
		seconds += runs[i].Metrics.Duration.Seconds()
	}
	s.Time, s.Timestamp = fmt.Sprintf("%.3f", seconds), runs[0].Run.Started.UTC().Format(time.RFC3339)
	var failure *junitFailure
	if outcome := f.outcome(); outcome != outcomePass {
		failure = &junitFailure{Type: outcome, Message: f.text(), Text: f.text()}
	}
	s.add(fmt.Sprintf("largest %s with %s", f.Axis, strings.Join(conditions, " and ")), f.text()+"\n", failure)
	return s
}

// lowerFirst lowers the first letter of a word that is not an abbreviation.
func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }
