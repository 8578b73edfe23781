package report

import (
	"io"

	"moontide/analyze/diff"
	"moontide/trace"
)

// JSON writes the comparison as one indented JSON object. What is not known is
// null.
func (c Diff) JSON(w io.Writer) error {
	objections, changes, requests, origins := []string{}, []object{}, []object{}, []object{}
	var differences, conditions []object
	for _, o := range c.Objections {
		objections = append(objections, o.Reason)
	}
	for _, x := range c.Changes {
		changes = append(changes, object{{"setting", x.Setting}, {"a", append([]string{}, x.A...)}, {"b", append([]string{}, x.B...)}})
	}
	for _, x := range c.Differences {
		differences = append(differences, differenceJSON(x))
	}
	for _, j := range c.Judgements {
		conditions = append(conditions, object{{"condition", j.Gate.Text}, {"failed", j.Failed}, {"reason", j.Reason}})
	}
	for _, r := range c.Requests {
		requests = append(requests, object{
			{"latency", r.Latency.Key()}, {"pairs", r.Count}, {"mean", number(r.Mean)}, {"mean_interval", intervalJSON(r.MeanInterval)},
			{"median", number(r.Median)}, {"median_interval", intervalJSON(r.MedianInterval)}, {"lower_in_b", r.Lower}, {"higher_in_b", r.Higher},
		})
	}
	for _, o := range c.Origins {
		origins = append(origins, object{{"by", o.By}, {"bands", bandsJSON(o.Bands)}})
	}
	out := object{
		{"a", sideJSON(c.NameA, c.A)}, {"b", sideJSON(c.NameB, c.B)}, {"confidence", number(diff.Level)},
		{"objections", objections}, {"changes", changes}, {"differences", differences},
	}
	if len(conditions) > 0 {
		out = append(out, field{"conditions", conditions})
	}
	return writeJSON(w, append(out,
		field{"intervals_by_runs", c.ByRuns()}, // whether the run means alone are the sample
		field{"paired", c.Paired}, field{"pairs", c.Pairs}, field{"completed_in_a_alone", c.OnlyA}, field{"completed_in_b_alone", c.OnlyB},
		field{"requests", requests}, field{"origins", origins}))
}

func sideJSON(name string, runs []*diff.Run) object {
	var all []object
	for _, r := range runs {
		all = append(all, object{
			{"name", r.Name}, {"verdict", r.Verdict.Level.String()}, {"completed", r.Completed}, {"failed", r.Failed},
			{"itl_gaps_kept", number(r.GapsKept)}, // below 1 if intervals of ITL are based on a part of the gaps
		})
	}
	return object{{"name", name}, {"runs", all}}
}

func differenceJSON(x diff.Difference) object {
	_, verdict := changeText(x) // better, worse or nothing
	var significant any
	if x.Interval.Set {
		significant = x.Significant()
	}
	return object{
		{"metric", x.Metric.Key}, {"a", numberOf(x.A)}, {"b", numberOf(x.B)}, {"a_runs", numbersOf(x.RunsA)}, {"b_runs", numbersOf(x.RunsB)},
		{"difference", numberOf(x.Difference)}, {"interval", intervalJSON(x.Interval)},
		{"relative", numberOf(x.Relative)}, {"relative_interval", intervalJSON(x.RelativeInterval)},
		{"significant", significant}, {"rising", x.Rising}, {"verdict", verdict},
	}
}

func bandsJSON(bands []diff.Band) (all []object) {
	for _, b := range bands {
		var latencies []object
		for _, p := range b.Latencies {
			latencies = append(latencies, object{{"latency", p.Latency.Key()}, {"pairs", p.Count}, {"mean", number(p.Mean)}, {"interval", intervalJSON(p.Interval)}, {"adds", number(p.Adds)}})
		}
		all = append(all, object{{"band", b.Name}, {"pairs", b.Pairs}, {"latencies", latencies}})
	}
	return all
}

func numbersOf(values []trace.Opt[float64]) (all []*number) {
	for _, v := range values {
		all = append(all, numberOf(v))
	}
	return all
}

func intervalJSON(i trace.Opt[diff.Interval]) *[2]number {
	if !i.Set {
		return nil
	}
	return &[2]number{number(i.Value.Low), number(i.Value.High)}
}
