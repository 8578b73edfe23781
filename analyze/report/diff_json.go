package report

import (
	"io"

	"moontide/analyze/diff"
	"moontide/analyze/run"
)

// JSON writes the comparison as one JSON object. Unknown values are null.
func (c Diff) JSON(w io.Writer) error {
	notes := []string{}
	for _, n := range c.notes() {
		notes = append(notes, n.String())
	}
	objections := []string{}
	for _, o := range c.Objections {
		objections = append(objections, o.Reason)
	}
	changes := objects(c.Changes, func(x diff.Change) object {
		return object{{"setting", x.Setting}, {"a", append([]string{}, x.A...)}, {"b", append([]string{}, x.B...)}}
	})
	requests := objects(c.Requests, func(r diff.Requests) object {
		return object{
			{"latency", r.Latency.Key()}, {"pairs", r.Count}, {"mean", r.Mean}, {"mean_interval", r.MeanInterval},
			{"median", r.Median}, {"median_interval", r.MedianInterval}, {"lower_in_b", r.Lower}, {"higher_in_b", r.Higher},
		}
	})
	origins := objects(c.Attributions, func(o diff.Attribution) object { return object{{"by", o.By}, {"bands", objects(o.Bands, bandJSON)}} })
	out := object{
		{"a", sideJSON(c.NameA, c.A)}, {"b", sideJSON(c.NameB, c.B)}, {"confidence", diff.Level},
		{"objections", objections}, {"notes", notes}, {"warnings", append([]string{}, c.Warnings...)}, {"gates", gatesJSON(c.Judgements)}, {"changes", append([]object{}, changes...)}, {"differences", objects(c.Differences, differenceJSON)},
	}
	return writeJSON(w, append(out, object{
		{"intervals_by_runs", c.ByRuns()}, // whether the run means are the sample
		{"paired", c.Paired}, {"pairs", c.Pairs}, {"completed_in_a_alone", c.OnlyA}, {"completed_in_b_alone", c.OnlyB},
		{"requests", append([]object{}, requests...)}, {"origins", append([]object{}, origins...)},
		{"prediction", c.predictionJSON()}, // null unless only one side is simulated
	}...))
}

func (c Diff) predictionJSON() any {
	p := c.Prediction
	if p == nil {
		return nil
	}
	predicted := "a"
	if p.OfB {
		predicted = "b"
	}
	errors := objects(p.Errors, func(e diff.PredictionError) object {
		return object{
			{"metric", e.Metric.Key}, {"measured", e.Measured}, {"predicted", e.Predicted},
			{"error", e.Relative}, // predicted / measured - 1
			{"interval", e.Interval},
		}
	})
	phases := objects(p.Phases, func(e diff.PhaseError) object {
		return object{
			{"phase", phaseKeys[e.Phase]}, {"measured_ms", e.Measured}, {"predicted_ms", e.Predicted},
			{"share", e.Share}, // of the absolute errors of TTFT and decode time, summed over the requests
		}
	})
	where := objects(p.Focus.Where, func(w diff.Where) object { return object{{"by", w.By}, {"band", w.Band}} })
	return object{
		{"predicted", predicted}, // the side that is simulated
		{"errors", append([]object{}, errors...)}, {"phases", phases},
		{"cached", object{
			{"measured_tokens", p.Cached.Measured}, {"predicted_tokens", p.Cached.Predicted},
			{"equal", p.Cached.Equal}, {"predicted_fewer", p.Cached.Fewer}, {"predicted_more", p.Cached.More}, // requests
		}},
		{"focus", object{ // a group of requests that has most of the error, in one phase
			{"phase", phaseKeys[p.Focus.Phase]}, {"share", p.Focus.Share}, {"requests", p.Focus.Requests}, {"where", append([]object{}, where...)},
		}},
	}
}

// phaseKeys name the phases: until the first token, and after it.
var phaseKeys = map[diff.Phase]string{diff.UntilFirstToken: "ttft", diff.Decode: "decode"}

func sideJSON(name string, runs []*diff.Run) object {
	return object{{"name", name}, {"runs", objects(runs, func(r *diff.Run) object {
		reasons := []string{}
		if r.Verdict.Level != run.Valid {
			reasons = r.Verdict.Reasons()
		}
		return object{
			{"name", r.Name}, {"verdict", r.Verdict.Level.String()}, {"reasons", reasons}, {"completed", r.Completed}, {"failed", r.Failed},
			{"simulated", r.Run.Target.Simulated},
			{"itl_gaps_kept", r.GapsKept}, // below 1 if intervals of ITL are based on a subset of the gaps
		}
	})}}
}

func differenceJSON(x diff.Difference) object {
	return object{
		{"metric", x.Metric.Key}, {"a", x.A}, {"b", x.B}, {"a_runs", x.RunsA}, {"b_runs", x.RunsB},
		{"difference", x.Difference}, {"interval", x.Interval},
		{"relative", x.Relative}, {"relative_interval", x.RelativeInterval},
		{"significant", orNull(x.Significant(), x.Interval.Set)}, {"rising", x.Rising}, {"verdict", verdictWord(x)},
	}
}

func bandJSON(b diff.Band) object {
	return object{
		{"band", b.Name}, {"pairs", b.Pairs},
		{"share", b.Share}, // of the absolute differences of TTFT and decode time, summed over the pairs
		{"latencies", objects(b.Latencies, func(p diff.BandLatency) object {
			return object{{"latency", p.Latency.Key()}, {"pairs", p.Count}, {"a", p.A}, {"b", p.B}, {"mean", p.Mean}, {"interval", p.Interval}, {"adds", p.Adds}}
		})},
	}
}
