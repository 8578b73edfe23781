package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/analyze/run"
	"moontide/replay/bench"
)

// addAnswers says what was found: a paragraph for one candidate, a table for several.
func (p Plan) addAnswers(s *doc.Section) {
	if len(p.Found) == 1 {
		f := &p.Found[0]
		s.Text(p.sentence(f))
		return
	}
	t := doc.Table{Columns: []string{"Deployment", "Answer", "Limited by"}}
	for i := range p.Found {
		f := &p.Found[i]
		cells := []string{p.nameOf(f), p.answer(f), cmp.Or(strings.Join(p.shortfalls(f, false), ", "), doc.Absent)}
		t.Add(cells...)
	}
	t.Left = len(t.Columns) - 1
	s.Table(t)
	for i := range p.Found {
		if text := p.exceptions(&p.Found[i]); text != "" {
			s.Warn(p.nameOf(&p.Found[i]) + ": " + text)
		}
	}
}

// sentence answers in words: "5 engines meet the objectives. 4 engines: p99
// TTFT 2.3 s, ±15 % by the held-out rows (p99_ttft_ms<2000)."
func (p Plan) sentence(f *bench.Found) string {
	text := p.answer(f)
	switch {
	case f.Answer.Found && f.Axis == bench.Engines && f.Answer.Level == 1:
		text += " meets the objectives"
	case f.Answer.Found && f.Axis == bench.Engines:
		text += " meet the objectives"
	case f.Answer.Found:
		text = f.Name() + ": the objectives are met " + text
	}
	return strings.Join(strings.Fields(upperFirst(text)+". "+p.limit(f)+" "+p.exceptions(f)), " ")
}

// nameOf names the candidate of a search; the number of engines is the answer.
func (p Plan) nameOf(f *bench.Found) string {
	if f.Axis == bench.Engines {
		return cmp.Or(f.Variant, "all")
	}
	return f.Name()
}

// amountOf names a level: "5 engines", "10.9 req/s (speedup 3.2)" or "concurrency 8".
func amountOf(f *bench.Found, level float64) string {
	switch f.Axis {
	case bench.Engines:
		return doc.Count(int(level), "engine")
	case bench.Speedup:
		speedup := "speedup " + bench.FormatLevel(level)
		if at := f.At(level); at != nil && at.AchievedRate.Set {
			return planCell(run.Metric{Unit: run.RequestsPerSecond}, at.AchievedRate) + " req/s (" + speedup + ")"
		}
		return speedup
	}
	return string(f.Axis) + " " + doc.Int(int(level))
}

// answer says what meets the objectives.
func (p Plan) answer(f *bench.Found) string {
	a := f.Answer
	switch {
	case !a.Found && f.Axis == bench.Engines:
		return "no number of engines up to " + doc.Int(int(a.Missed)) + " meets the objectives"
	case !a.Found:
		return "not even " + amountOf(f, a.Missed) + " meets the objectives"
	case f.Axis == bench.Engines:
		return amountOf(f, a.Level)
	case f.Bounded:
		return "up to " + amountOf(f, a.Level) + ", which is all that the sessions offer"
	case !a.Limited:
		return "up to " + amountOf(f, a.Level) + ", the highest load tried"
	}
	return "up to " + amountOf(f, a.Level)
}

// limit says what does not meet the objectives any more, and why.
func (p Plan) limit(f *bench.Found) string {
	if f.AtLimit() == nil {
		return ""
	}
	return upperFirst(amountOf(f, f.Answer.Missed)) + ": " + strings.Join(p.shortfalls(f, true), ", ") + "."
}

// shortfalls says what the prediction next to the answer does not meet: "p99 TTFT 2.3 s"
// or, with conditions, "p99 TTFT 2.3 s (p99_ttft_ms<2000)".
func (p Plan) shortfalls(f *bench.Found, conditions bool) (texts []string) {
	at := f.AtLimit()
	if at == nil {
		return nil
	}
	for _, j := range run.Failed(at.Judgements) {
		m, text := j.Gate.Metric, j.Gate.Condition.String()
		if j.Value.Set && !math.IsInf(j.Value.Value, 0) {
			text = lowerFirst(m.Label) + " " + planCell(m, j.Value)
			if m.Unit == run.RequestsPerSecond || m.Unit == run.TokensPerSecond {
				text += " " + string(m.Unit)
			}
			if heldOut := p.heldOut(m); conditions && heldOut != "" {
				text += ", " + heldOut + " by the held-out rows"
			}
			if conditions {
				text += " (" + objective(j.Gate) + ")"
			}
		}
		if j.Remark != "" {
			text += ", " + j.Remark
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		texts = at.Verdict.Reasons()
	}
	return texts
}

// objective returns the condition of a gate, after "not" if it must not hold.
func objective(g run.Gate) string {
	if g.Forbidden {
		return "not " + g.Condition.String()
	}
	return g.Condition.String()
}

// exceptions says which levels contradict the answer.
func (p Plan) exceptions(f *bench.Found) string {
	text := ""
	if !f.Answer.Complete {
		text = "The search was not completed. "
	}
	if len(f.Answer.Exceptions) == 0 {
		return strings.TrimSpace(text)
	}
	var levels []string
	for _, level := range f.Answer.Exceptions {
		levels = append(levels, amountOf(f, level))
	}
	slices.Sort(levels)
	list := strings.Join(levels, ", ")
	if f.Axis == bench.Engines {
		return text + "The answer is not monotonic: more engines do not always meet the objectives (" + list + ")."
	}
	return text + "The answer is not monotonic: some higher loads meet the objectives (" + list + ")."
}

// atAnswers returns the predictions at the answers of searches and at what limits them.
func (p Plan) atAnswers() (all []bench.Prediction) {
	for i := range p.Found {
		for _, at := range []*bench.Prediction{p.Found[i].AtAnswer(), p.Found[i].AtLimit()} {
			if at != nil {
				all = append(all, *at)
			}
		}
	}
	return all
}

// answerGates returns PASS if every candidate has an answer, with the values at the
// answers, and those that limit them.
func (p Plan) answerGates() *doc.Verdict {
	v := &doc.Verdict{Level: "PASS"}
	for i := range p.Found {
		f := &p.Found[i]
		failed := "LIMIT"
		if !f.Answer.Found {
			v.Level, failed = "FAIL", "FAIL"
		}
		for _, at := range []*bench.Prediction{f.AtAnswer(), f.AtLimit()} {
			if at == nil {
				continue
			}
			for _, j := range at.Judgements {
				if j.Passed == at.Met {
					v.Evidence = append(v.Evidence, gateEvidence(PredictionName(at)+": ", j, failed))
				}
			}
		}
	}
	return v
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// lowerFirst lowers the first letter of a word that is not an abbreviation.
func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }
