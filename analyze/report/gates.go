package report

import (
	"moontide/analyze/report/doc"
	"moontide/analyze/run"
)

// Judgements applies the gates of the view to the run. An incomplete run passes none
// unless it is forced, because the missing requests could have failed it.
func (r Run) Judgements() (all []run.Judgement) {
	for _, g := range r.View.Gates {
		if r.Info.Finished() || g.Force {
			all = append(all, g.Judge(r.Result))
		} else {
			all = append(all, g.Unmet("the run is incomplete"))
		}
	}
	return all
}

// gates returns the outcome of gates, nil if there are none.
func gates(all []run.Judgement) *doc.Verdict {
	if len(all) == 0 {
		return nil
	}
	v := &doc.Verdict{Level: gateLevel(all)}
	for _, j := range all {
		v.Evidence = append(v.Evidence, gateEvidence("", j, "FAIL"))
	}
	return v
}

// gateEvidence returns the outcome of a gate; failed is the level of those that failed.
func gateEvidence(where string, j run.Judgement, failed string) doc.Evidence {
	if j.Passed {
		failed = "PASS"
	}
	return doc.Evidence{Level: failed, Text: where + j.String()}
}

// gateLevel returns PASS if all gates passed.
func gateLevel(all []run.Judgement) string { return passLevel(len(run.Failed(all)) == 0) }

func passLevel(passed bool) string {
	if passed {
		return "PASS"
	}
	return "FAIL"
}

// gatesJSON returns one object per gate, null without gates. The value and margin of
// a change in percent are shares.
func gatesJSON(all []run.Judgement) any {
	return orNull(objects(all, func(j run.Judgement) object {
		return object{
			{"condition", j.Gate.Condition.String()}, {"must_hold", !j.Gate.Forbidden}, {"passed", j.Passed},
			{"metric", j.Gate.Metric.Key}, {"limit", j.Gate.Limit}, {"value", finite(j.Value)}, {"margin", j.Margin}, {"text", j.String()},
		}
	}), len(all) > 0)
}

// GateJSON is a gate applied to a run or to a deployment.
type GateJSON struct {
	Condition string   `json:"condition"`
	MustHold  bool     `json:"must_hold"` // false: it must not hold
	Passed    bool     `json:"passed"`
	Value     *float64 `json:"value"` // null if it is unknown
	Text      string   `json:"text"`
}

func gateObjects(all []run.Judgement) (list []GateJSON) {
	for _, j := range all {
		list = append(list, GateJSON{j.Gate.Condition.String(), !j.Gate.Forbidden, j.Passed, pointer(j.Value), j.String()})
	}
	return list
}
