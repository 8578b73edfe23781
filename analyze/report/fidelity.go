package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"moontide/analyze/fidelity"
	"moontide/analyze/report/doc"
	"moontide/trace"
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
	for _, r := range f.Results {
		for _, v := range r.Values {
			outcome := r.Outcome
			if v.Gap.Set && v.Gap.Value <= r.Limit.Value {
				outcome = fidelity.Passed // another value of the aspect failed
			}
			t.Add(v.Name, valueText(v.Unit, v.Source), valueText(v.Unit, v.Drawn), gapText(r.Aspect, v.Gap), gapText(r.Aspect, r.Floor), gapText(r.Aspect, r.Limit), outcomes[outcome])
		}
		if r.Reason != "" {
			if lacking[r.Reason] == nil {
				reasons = append(reasons, r.Reason)
			}
			lacking[r.Reason] = append(lacking[r.Reason], r.Name)
		}
	}
	s.Table(t)
	s.Text("The floor is the gap between the source and another trace like it; the limit is the larger of an aspect's bound and twice the floor. " +
		"Lengths and shared context differ by the KS distance between their distributions, 0 to 1, gaps by the mean ratio of their quantiles; all are shown with their medians. " +
		"LRU cache sizes are shares of the source's unique blocks.")
	for _, reason := range reasons {
		s.Note("", fmt.Sprintf("Not compared (%s): %s.", reason, strings.Join(lacking[reason], ", ")))
	}
	f.novelty(d.Section("Novelty"))
	for _, note := range f.notes() {
		d.Note("Note", note+".")
	}
	d.Verdict = f.verdict()
	return d
}

var outcomes = map[fidelity.Outcome]string{fidelity.Passed: "pass", fidelity.Failed: "FAIL", fidelity.NotApplicable: "n/a"}

func (f Fidelity) novelty(s *doc.Section) {
	n := f.Novelty
	s.Row("Longest run of the source's rows", doc.Int(n.Rows), doc.Plural(n.Rows, "row"), fmt.Sprintf("at most %d", n.MaxRows))
}

func (f Fidelity) verdict() *doc.Verdict {
	if f.Pass() {
		return &doc.Verdict{Level: "PASS", Evidence: []doc.Evidence{{Level: "PASS", Text: "all aspects are within their limits"}}}
	}
	v := &doc.Verdict{Level: "FAIL"}
	for _, r := range f.Failed() {
		why := fmt.Sprintf("gap %s, limit %s", gapText(r.Aspect, r.Gap), gapText(r.Aspect, r.Limit))
		if !r.Gap.Set {
			why = r.Reason
		}
		v.Evidence = append(v.Evidence, doc.Evidence{Level: "FAIL", Text: r.Name + ": " + why})
	}
	if n := f.Novelty; !n.Pass() {
		v.Evidence = append(v.Evidence, doc.Evidence{Level: "FAIL", Text: "novelty: the longest run copied from the source has " + doc.Count(n.Rows, "row")})
	}
	return v
}

func (f Fidelity) notes() (notes []string) {
	if x := f.RateScale; x > 0 && x != 1 {
		notes = append(notes, fmt.Sprintf("rate, gaps, peak and cache sizes are compared with those of the source at %s times its rate", doc.Plain(x)))
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
		if n := of.Estimated; n > 0 {
			notes = append(notes, fmt.Sprintf("%s: the times of %s are estimated from delays and assumed answer times of %g ms and %g ms a token",
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

// FidelityJSON is the form of a fidelity check in JSON.
type FidelityJSON struct {
	Source FidelityTrace `json:"source"`
	Drawn  FidelityTrace `json:"drawn"`
	Pass   bool          `json:"pass"`
	// Pieces is the number of pieces of the drawn trace, each as long as the source.
	Pieces int `json:"pieces"`
	// RateScale is how many times the source's rate it is compared with.
	RateScale float64          `json:"rate_scale"`
	Aspects   []FidelityAspect `json:"aspects"`
	Novelty   FidelityNovelty  `json:"novelty"`
	Notes     []string         `json:"notes"`
}

// FidelityTrace is a compared trace.
type FidelityTrace struct {
	Trace    string `json:"trace"` // name
	Requests int    `json:"requests"`
	Sessions int    `json:"sessions"` // 0 without session ids and block ids
}

// FidelityAspect is a compared aspect. Numbers are null if it is not applicable.
type FidelityAspect struct {
	Key        string          `json:"key"`
	Name       string          `json:"name"`
	GapIs      string          `json:"gap_is"` // "ks", "log_ratio", "difference" (of shares), or "relative"
	Values     []FidelityValue `json:"values"`
	Gap        *float64        `json:"gap"` // the largest of those of values
	NoiseFloor *float64        `json:"noise_floor"`
	Bound      float64         `json:"bound"`
	Limit      *float64        `json:"limit"`   // the larger of bound and twice noise_floor
	Outcome    string          `json:"outcome"` // "pass", "fail", or "n/a"
	Reason     string          `json:"reason"`  // why there is no gap, or ""
}

// FidelityValue is one of the values of an aspect.
type FidelityValue struct {
	Name   string   `json:"name"`
	Unit   string   `json:"unit"` // "" for a number of requests; "%": 1 is 100 %
	Source *float64 `json:"source"`
	Drawn  *float64 `json:"drawn"`
	Gap    *float64 `json:"gap"`
}

// FidelityNovelty tells whether the drawn trace copies its source.
type FidelityNovelty struct {
	Rows    int  `json:"rows"`     // longest run of the source's rows
	MaxRows int  `json:"max_rows"` // that passes
	Pass    bool `json:"pass"`
}

// JSON writes the report as one indented JSON object.
func (f Fidelity) JSON(w io.Writer) error {
	n := f.Novelty
	out := FidelityJSON{
		Source: FidelityTrace{f.SourceName, f.Source.Requests(), f.Source.Sessions},
		Drawn:  FidelityTrace{f.DrawnName, f.Drawn.Requests(), f.Drawn.Sessions},
		Pass:   f.Pass(), Pieces: f.Pieces, RateScale: cmp.Or(f.RateScale, 1),
		Novelty: FidelityNovelty{n.Rows, n.MaxRows, n.Pass()},
		Notes:   append([]string{}, f.notes()...),
	}
	for _, r := range f.Results {
		a := FidelityAspect{
			Key: r.Key, Name: r.Name, GapIs: string(r.Measure),
			Gap: pointer(r.Gap), NoiseFloor: pointer(r.Floor), Bound: r.Bound, Limit: pointer(r.Limit),
			Outcome: string(r.Outcome), Reason: r.Reason,
		}
		for _, v := range r.Values {
			a.Values = append(a.Values, FidelityValue{v.Name, v.Unit, pointer(v.Source), pointer(v.Drawn), pointer(v.Gap)})
		}
		out.Aspects = append(out.Aspects, a)
	}
	return writeJSON(w, out)
}
