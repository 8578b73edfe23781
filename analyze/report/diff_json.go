package report

import (
	"io"

	"moontide/analyze/diff"
	"moontide/analyze/measure"
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
	out := object{
		{"a", sideJSON(c.NameA, c.A)}, {"b", sideJSON(c.NameB, c.B)}, {"confidence", diff.Level},
		{"objections", objections}, {"notes", notes}, {"gates", gateObjects(c.Judgements)}, {"changes", append([]object{}, changes...)}, {"differences", objects(c.Differences, differenceJSON)},
	}
	return writeJSON(w, append(out, object{
		{"intervals_by_runs", c.ByRuns()}, // whether the run means are the sample
		{"paired", c.Paired}, {"pairs", c.Pairs}, {"completed_in_a_alone", c.OnlyA}, {"completed_in_b_alone", c.OnlyB},
		{"requests", append([]object{}, requests...)},
	}...))
}

func sideJSON(name string, runs []*diff.Run) object {
	return object{{"name", name}, {"runs", objects(runs, func(r *diff.Run) object {
		reasons := []string{}
		if r.Verdict.Level != measure.Valid {
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
		{"significant", orNull(x.Significant(), x.Interval.Set)}, {"verdict", verdictWord(x)},
	}
}
