package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"moontide/trace/check"
)

// Check is what was found in a trace.
type Check struct {
	Name   string
	Report *check.Report
}

// Text writes every finding with its first places. The errors are those of w.
func (c Check) Text(w io.Writer) error {
	d := &document{title: "TRACE CHECK", subject: "Trace: " + c.Name}
	for _, f := range c.Report.Findings {
		d.section(fmt.Sprintf("%s: %s, %s", strings.ToUpper(string(f.Severity)), f.Kind, counted(f.Count, strings.TrimSuffix(f.Of, "s"))))
		d.paragraph(f.Says)
		if f.Evidence != "" {
			d.paragraph(oneLine(f.Evidence))
		}
		if len(f.Examples) > 0 {
			t := table{columns: []string{"line", "value"}, words: true}
			for _, e := range f.Examples {
				t.add(fmt.Sprint(e.Line), oneLine(e.Value))
			}
			d.table(t)
			if more := f.Count - len(f.Examples); more > 0 {
				d.paragraph("and " + grouped(more) + " more")
			}
		}
	}
	d.section("Verdict")
	d.paragraph(c.verdict())
	return write(w, d.text())
}

// verdict is what the findings come to.
func (c Check) verdict() string {
	warned := func(f check.Finding) bool { return f.Severity == check.Warning }
	switch all := c.Report.Findings; {
	case !c.Report.Replayable():
		return "A replay of this trace would not mean what it says."
	case slices.ContainsFunc(all, warned):
		return "A replay of this trace means what it says, but for what the warnings above tell."
	case len(all) > 0:
		return "A replay of this trace means what it says."
	}
	return "Nothing was found: a replay of this trace means what it says."
}

type checkJSON struct {
	Trace      string `json:"trace"`
	Replayable bool   `json:"replayable"`
	*check.Report
}

// JSON writes the findings as one indented JSON object.
func (c Check) JSON(w io.Writer) error {
	return writeJSON(w, checkJSON{c.Name, c.Report.Replayable(), c.Report})
}
