package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"moontide/analyze/fidelity"
	"moontide/analyze/report/doc"
	"moontide/trace"
	"moontide/trace/stats"
)

// Fidelity judges a drawn trace against its source.
type Fidelity struct {
	SourceName, DrawnName string
	*fidelity.Report
	RateScale float64 // by which the source's rate was multiplied; 0 or 1 for none
}

// Document has a row for each aspect, the novelty and the verdict.
func (f Fidelity) Document() *doc.Document {
	d := doc.New("FIDELITY", fmt.Sprintf("%s, drawn from %s", f.DrawnName, f.SourceName))
	s := d.Section("Aspects")
	t := doc.Table{Columns: []string{"", "source", "drawn", "gap", "floor", "limit", "result"}, Left: 1}
	var reasons []string
	lacking := map[string][]string{}
	for _, a := range f.Aspects {
		for _, v := range a.Values {
			outcome := a.Outcome
			if v.Gap.Set && v.Gap.Value <= a.Limit.Value {
				outcome = fidelity.Passed // another value of the aspect failed
			}
			t.Add(v.Name, valueText(v.Unit, v.Source), valueText(v.Unit, v.Drawn), gapText(a, v.Gap), gapText(a, a.Floor), gapText(a, a.Limit), outcomes[outcome])
		}
		if a.Reason != "" {
			if lacking[a.Reason] == nil {
				reasons = append(reasons, a.Reason)
			}
			lacking[a.Reason] = append(lacking[a.Reason], a.Name)
		}
	}
	s.Table(t)
	s.Text("The floor is the gap between the source and another trace like it; the limit is the larger of an aspect's bound and twice the floor. " +
		"Lengths and shared context differ by the KS distance between their distributions, 0 to 1, gaps by the mean ratio of their quantiles; all are shown with their medians. " +
		"LRU cache sizes are shares of the source's unique blocks.")
	for _, reason := range reasons {
		s.Note("", fmt.Sprintf("Not compared (%s): %s.", reason, strings.Join(lacking[reason], ", ")))
	}
	d.Section("Novelty").Row("Longest run of the source's rows", doc.Int(f.Copied), doc.Plural(f.Copied, "row"), fmt.Sprintf("at most %d", f.MaxCopied))
	for _, note := range f.notes() {
		d.Note("Note", note+".")
	}
	d.Verdict = f.verdict()
	return d
}

var outcomes = map[string]string{fidelity.Passed: "pass", fidelity.Failed: "FAIL", fidelity.NotApplicable: "n/a"}

func (f Fidelity) verdict() *doc.Verdict {
	if f.Pass() {
		return &doc.Verdict{Level: "PASS", Evidence: []doc.Evidence{{Level: "PASS", Text: "all aspects are within their limits"}}}
	}
	v := &doc.Verdict{Level: "FAIL"}
	for _, a := range f.Aspects {
		if a.Outcome != fidelity.Failed {
			continue
		}
		why := fmt.Sprintf("gap %s, limit %s", gapText(a, a.Gap), gapText(a, a.Limit))
		v.Evidence = append(v.Evidence, doc.Evidence{Level: "FAIL", Text: a.Name + ": " + cmp.Or(a.Reason, why)})
	}
	if !f.Novel() {
		v.Evidence = append(v.Evidence, doc.Evidence{Level: "FAIL", Text: "novelty: the longest run copied from the source has " + doc.Count(f.Copied, "row")})
	}
	return v
}

func (f Fidelity) notes() (notes []string) {
	if x := f.RateScale; x > 0 && x != 1 {
		notes = append(notes, fmt.Sprintf("rate, peak and cache sizes are compared with %s times those of the source", stats.Plain(x)))
	}
	if f.Pieces > 1 {
		notes = append(notes, fmt.Sprintf("the generated trace is longer than the source: it is compared in %d pieces of as many requests", f.Pieces))
	}
	if f.Source.FewSessions() {
		notes = append(notes, "the source has few sessions: noise floors are wide, and a trace may pass that differs much")
	}
	for _, of := range []struct {
		name string
		*fidelity.Trace
	}{{f.SourceName, f.Source}, {f.DrawnName, f.Drawn}} {
		if n := of.Arrivals.Estimated; n > 0 {
			notes = append(notes, fmt.Sprintf("%s: the times of %s are estimated from delays and assumed response times of %g ms and %g ms a token",
				of.name, doc.Count(n, "turn"), trace.AssumedTTFT, trace.AssumedTPOT))
		}
	}
	return notes
}

func valueText(unit string, v trace.Opt[float64]) string {
	switch {
	case !v.Set:
		return doc.Absent
	case unit == "%":
		return doc.Percent(v.Value) + " %"
	case unit == "ms":
		return doc.Duration(v.Value)
	case unit == "/s":
		return doc.Fixed(v.Value, 3) + "/s"
	}
	return doc.Fixed(v.Value, 0)
}

func gapText(a fidelity.Aspect, v trace.Opt[float64]) string {
	switch {
	case !v.Set:
		return doc.Absent
	case a.Measure == fidelity.KS:
		return doc.Fixed(v.Value, 3)
	case a.Measure == fidelity.Difference:
		return doc.Fixed(100*v.Value, 1) + " pt"
	}
	return doc.Fixed(100*v.Value, 1) + " %"
}

// JSON writes the report as one indented JSON object. Numbers that are not known are null.
func (f Fidelity) JSON(w io.Writer) error {
	side := func(name string, t *fidelity.Trace) object {
		return object{{"trace", name}, {"requests", t.Requests}, {"sessions", t.Sessions.Sessions}} // 0 without session ids and block ids
	}
	return writeJSON(w, object{
		{"source", side(f.SourceName, f.Source)}, {"drawn", side(f.DrawnName, f.Drawn)}, {"pass", f.Pass()},
		{"pieces", f.Pieces}, {"rate_scale", cmp.Or(f.RateScale, 1)}, {"aspects", f.Aspects},
		{"novelty", object{{"rows", f.Copied}, {"max_rows", f.MaxCopied}, {"pass", f.Novel()}}},
		{"notes", append([]string{}, f.notes()...)},
	})
}
