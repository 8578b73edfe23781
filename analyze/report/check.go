package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/trace/check"
)

// Check holds the findings of a trace check.
type Check struct {
	Name   string
	Report *check.Report
}

// Document lists every finding with its first occurrences.
func (c Check) Document() *doc.Document {
	d := doc.New("TRACE CHECK", "Trace: "+c.Name)
	for _, f := range c.Report.Findings {
		s := d.Section(fmt.Sprintf("%s: %s, %s", strings.ToUpper(string(f.Severity)), f.Kind, doc.Count(f.Count, strings.TrimSuffix(f.Of, "s"))))
		s.Text(f.Message)
		if f.Evidence != "" {
			s.Text(f.Evidence)
		}
		t := doc.Table{Columns: []string{"line", "value"}, Left: doc.AllLeft}
		for _, e := range f.Examples {
			t.Add(fmt.Sprint(e.Line), e.Value)
		}
		s.Table(t)
		if more := f.Count - len(f.Examples); more > 0 && len(f.Examples) > 0 {
			s.Text("and " + doc.Int(more) + " more")
		}
	}
	d.Section("Verdict").Text(c.verdict())
	return d
}

func (c Check) verdict() string {
	warned := func(f check.Finding) bool { return f.Severity == check.Warning }
	switch all := c.Report.Findings; {
	case !c.Report.Replayable():
		return "This trace cannot be replayed faithfully."
	case slices.ContainsFunc(all, warned):
		return "This trace can be replayed faithfully, except for the warnings above."
	case len(all) > 0:
		return "This trace can be replayed faithfully."
	}
	return "No problems found: this trace can be replayed faithfully."
}

// CheckJSON is the JSON of the findings.
type CheckJSON struct {
	Trace      string `json:"trace"`      // name
	Replayable bool   `json:"replayable"` // faithfully: no finding is an error
	*check.Report
}

// JSON writes the findings as one indented JSON object.
func (c Check) JSON(w io.Writer) error {
	return writeJSON(w, CheckJSON{c.Name, c.Report.Replayable(), c.Report})
}
