package report

import (
	"fmt"
	"io"
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
		d.section(fmt.Sprintf("%s: %s, %s %s", strings.ToUpper(string(f.Severity)), f.Kind, grouped(f.Count), f.Of))
		d.paragraph(f.Says)
		if f.Evidence != "" {
			d.paragraph(oneLine(f.Evidence))
		}
		if len(f.Examples) > 0 {
			t := table{columns: []string{"line", "value"}}
			for _, e := range f.Examples {
				t.add(fmt.Sprint(e.Line), oneLine(e.Value))
			}
			d.table(t)
		}
	}
	d.section("Verdict")
	switch {
	case !c.Report.Replayable():
		d.paragraph("A replay of this trace would not mean what it says.")
	case len(c.Report.Findings) == 0:
		d.paragraph("Nothing was found.")
	default:
		d.paragraph("A replay of this trace means what it says, within the findings above.")
	}
	return write(w, d.text())
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
