package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"moontide/analyze/fidelity"
	"moontide/analyze/report/doc"
	"moontide/trace"
)

// Fidelity judges a drawn trace against its source.
type Fidelity struct {
	SourceName, DrawnName string
	*fidelity.Report
	Engine  FidelityEngine // that TTFTs are simulated with; the zero value without any
	Remarks []string       // on how the trace was drawn
}

// FidelityEngine is a simulated engine.
type FidelityEngine struct {
	Speed float64 `json:"speed"` // as a multiple of the default
	// Shares of the time from the first arrival to the last that it is busy with each
	// trace; above 1 if it falls behind.
	SourceBusy float64 `json:"source_busy"`
	DrawnBusy  float64 `json:"drawn_busy"`
}

// knowsBusy reports whether the shares are known: a trace at one instant has none.
func (e FidelityEngine) knowsBusy() bool {
	busy := e.SourceBusy + e.DrawnBusy
	return !math.IsInf(busy, 0) && !math.IsNaN(busy)
}

// Document has a row for each aspect, the novelty and the verdict.
func (f Fidelity) Document() *doc.Document {
	d := doc.New("FIDELITY", fmt.Sprintf("%s, drawn from %s", f.DrawnName, f.SourceName))
	d.Headlines = f.headlines()
	s := d.Section("Aspects")
	t := doc.Table{Columns: []string{"", "source", "drawn", "gap", "floor", "limit", "result"}, Left: 1}
	var reasons []string
	lacking := map[string][]string{}
	for _, r := range f.Results {
		t.Add(r.Name, valueText(r.Aspect, r.Source), valueText(r.Aspect, r.Drawn), gapText(r.Aspect, r.Gap), gapText(r.Aspect, r.Floor), gapText(r.Aspect, r.Limit), outcomes[r.Outcome])
		if r.Reason != "" {
			if lacking[r.Reason] == nil {
				reasons = append(reasons, r.Reason)
			}
			lacking[r.Reason] = append(lacking[r.Reason], r.Name)
		}
	}
	s.Figure(f.figure())
	s.Table(t)
	s.Text("The floor is the gap between the source and resamples of itself; the limit is the larger of an aspect's bound and twice the floor. " +
		"KS is the distance between two distributions, 0 to 1, shown with their medians. LRU cache sizes are shares of the source's unique blocks; " +
		"the 8 workers have 10 % in total, and prefix routing.")
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
	if n.Sequential {
		s.Row("Longest run of its blocks", doc.Absent, "blocks", "ids of both count up")
		return
	}
	s.Row("Longest run of its blocks", doc.Int(n.Blocks), doc.Plural(n.Blocks, "block"), "at most 0")
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
		copied := fmt.Sprintf("runs copied from the source have %s and %s", doc.Count(n.Rows, "row"), doc.Count(n.Blocks, "block"))
		if n.Sequential { // equal ids are no copies then
			copied = "run copied from the source has " + doc.Count(n.Rows, "row")
		}
		v.Evidence = append(v.Evidence, doc.Evidence{Level: "FAIL", Text: "novelty: the longest " + copied})
	}
	return v
}

func (f Fidelity) notes() (notes []string) {
	notes = append(notes, f.Remarks...)
	if f.Pieces > 1 {
		notes = append(notes, fmt.Sprintf("the generated trace is longer than the source: hit rates, shared context, turn gaps, peaks, variation and TTFT are those of %d pieces of %s",
			f.Pieces, doc.Count(f.Source.Requests(), "request")))
	}
	for _, of := range []struct {
		name string
		*fidelity.Trace
	}{{f.SourceName, f.Source}, {f.DrawnName, f.Drawn}} {
		if n := of.Estimated(); n > 0 {
			notes = append(notes, fmt.Sprintf("%s: the times of %s are estimated from delays and assumed answer times of %g ms and %g ms a token",
				of.name, doc.Count(n, "turn"), trace.AssumedTTFT, trace.AssumedTPOT))
		}
	}
	if e := f.Engine; e.Speed > 0 {
		note := fmt.Sprintf("TTFT is simulated with one engine, %s times as fast as the default of moontide simulate", doc.Plain(e.Speed))
		if e.knowsBusy() {
			note += fmt.Sprintf("; it is busy %s %% of the time with the source and %s %% with the generated trace", doc.Fixed(100*e.SourceBusy, 0), doc.Fixed(100*e.DrawnBusy, 0))
		}
		notes = append(notes, note)
	}
	return notes
}

func valueText(a fidelity.Aspect, v trace.Opt[float64]) string {
	switch {
	case !v.Set:
		return doc.Absent
	case a.Unit == "tokens":
		return doc.Fixed(v.Value, 0)
	case a.Unit == "ms":
		return doc.Duration(v.Value)
	case a.Relative:
		return doc.Fixed(v.Value, 3)
	}
	return doc.Percent(v.Value) + " %"
}

func gapText(a fidelity.Aspect, v trace.Opt[float64]) string {
	switch {
	case !v.Set:
		return doc.Absent
	case a.KS:
		return doc.Fixed(v.Value, 3)
	case a.Relative:
		return doc.Fixed(100*v.Value, 1) + " %"
	}
	return doc.Fixed(100*v.Value, 1) + " pt"
}

// FidelityJSON is the form of a fidelity check in JSON.
type FidelityJSON struct {
	Source FidelityTrace `json:"source"`
	Drawn  FidelityTrace `json:"drawn"`
	Pass   bool          `json:"pass"`
	// Pieces is the number of pieces of the drawn trace, each as long as the source.
	Pieces int `json:"pieces"`
	// Engine that TTFTs are simulated with; null without any.
	Engine  *FidelityEngine  `json:"engine"`
	Aspects []FidelityAspect `json:"aspects"`
	Novelty FidelityNovelty  `json:"novelty"`
	Notes   []string         `json:"notes"`
}

// FidelityTrace is a compared trace.
type FidelityTrace struct {
	Trace    string `json:"trace"` // name
	Requests int    `json:"requests"`
	Sessions int    `json:"sessions"` // 0 without session ids and block ids
}

// FidelityAspect is a compared aspect. Numbers are null if it is not applicable.
type FidelityAspect struct {
	Key        string   `json:"key"`
	Name       string   `json:"name"`
	Definition string   `json:"definition"`
	Unit       string   `json:"unit"`   // of the values; "" for a share or ratio
	GapIs      string   `json:"gap_is"` // "relative", "difference" (of shares), or "ks"
	Source     *float64 `json:"source"`
	Drawn      *float64 `json:"drawn"`
	Gap        *float64 `json:"gap"`
	NoiseFloor *float64 `json:"noise_floor"`
	Bound      float64  `json:"bound"`
	Limit      *float64 `json:"limit"`   // the larger of bound and twice noise_floor
	Outcome    string   `json:"outcome"` // "pass", "fail", or "n/a"
	Reason     string   `json:"reason"`  // why there is no gap, or ""
}

// FidelityNovelty tells whether the drawn trace copies its source.
type FidelityNovelty struct {
	Rows       int  `json:"rows"`     // longest run of the source's rows
	MaxRows    int  `json:"max_rows"` // that passes
	Blocks     int  `json:"blocks"`   // longest run of the source's blocks, without templates
	Sequential bool `json:"sequential_ids"`
	Pass       bool `json:"pass"`
}

// JSON writes the report as one indented JSON object.
func (f Fidelity) JSON(w io.Writer) error {
	n := f.Novelty
	out := FidelityJSON{
		Source: FidelityTrace{f.SourceName, f.Source.Requests(), f.Source.Sessions()},
		Drawn:  FidelityTrace{f.DrawnName, f.Drawn.Requests(), f.Drawn.Sessions()},
		Pass:   f.Pass(), Pieces: f.Pieces,
		Novelty: FidelityNovelty{n.Rows, n.MaxRows, n.Blocks, n.Sequential, n.Pass()},
		Notes:   append([]string{}, f.notes()...),
	}
	if e := f.Engine; e.Speed > 0 && e.knowsBusy() {
		out.Engine = &e
	}
	for _, r := range f.Results {
		kind := "difference"
		switch {
		case r.KS:
			kind = "ks"
		case r.Relative:
			kind = "relative"
		}
		out.Aspects = append(out.Aspects, FidelityAspect{
			Key: r.Key, Name: r.Name, Definition: r.Definition, Unit: r.Unit, GapIs: kind,
			Source: pointer(r.Source), Drawn: pointer(r.Drawn), Gap: pointer(r.Gap), NoiseFloor: pointer(r.Floor),
			Bound: r.Bound, Limit: pointer(r.Limit), Outcome: string(r.Outcome), Reason: r.Reason,
		})
	}
	return writeJSON(w, out)
}
