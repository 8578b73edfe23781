package report

import (
	"moontide/analyze/measure"
	"moontide/analyze/report/doc"
)

// Judgements applies the gates of the view to the run. An incomplete run passes none
// unless it is forced, because the missing requests could have failed it.
func (r Run) Judgements() (all []measure.Judgement) {
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
func gates(all []measure.Judgement) *doc.Verdict {
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
func gateEvidence(where string, j measure.Judgement, failed string) doc.Evidence {
	if j.Passed {
		failed = "PASS"
	}
	return doc.Evidence{Level: failed, Text: where + j.String()}
}

// gateLevel returns PASS if all gates passed.
func gateLevel(all []measure.Judgement) string { return passLevel(len(measure.Failed(all)) == 0) }

func passLevel(passed bool) string {
	if passed {
		return "PASS"
	}
	return "FAIL"
}

// GateJSON is a gate applied to a run, a deployment or the difference of two runs. Value,
// limit and margin of a relative change are shares.
type GateJSON struct {
	Condition string   `json:"condition"`
	MustHold  bool     `json:"must_hold"` // false: it must not hold
	Passed    bool     `json:"passed"`
	Metric    string   `json:"metric"`
	Limit     float64  `json:"limit"`
	Value     *float64 `json:"value"`  // null if it is unknown
	Margin    *float64 `json:"margin"` // negative if the gate failed
	Text      string   `json:"text"`
}

func gateObjects(all []measure.Judgement) (list []GateJSON) {
	for _, j := range all {
		g := j.Gate
		list = append(list, GateJSON{g.Condition.String(), !g.Forbidden, j.Passed, g.Metric.Key, g.Limit, pointer(j.Value), pointer(j.Margin), j.String()})
	}
	return list
}
