package doc_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
)

// full has every kind of block, and notes and verdicts everywhere they can be.
func full() *doc.Document {
	d := doc.New("LOAD REPORT", "a subject")
	d.Note("Note", "a note of the document, with | and <b> in it")
	s := d.Section("First")
	s.Text("One sentence.", "Another one.")
	s.Warn("a warning in a section")
	s.Row("requests", "1", "tokens", "a remark")
	s.Figures(figure.Figure{Title: "a figure"})
	t := doc.Table{Columns: []string{"name", "value"}, Left: 1}
	t.Add("x", "1.00")
	s.Table(t)
	d.DetailSection("Details").Note("Not comparable", "a note in a detail section")
	for _, name := range []string{"one", "two"} {
		part := doc.New(name, "")
		part.Note("Simulated", "numbers of "+name+" are simulated")
		part.Verdict = &doc.Verdict{Level: "SUSPECT", Evidence: []doc.Evidence{{Level: "SUSPECT", Text: "evidence of " + name}, {Level: "VALID", Text: "other evidence of " + name}}}
		part.Gates = &doc.Verdict{Level: "FAIL", Evidence: []doc.Evidence{{Level: "FAIL", Text: "gate of " + name}, {Level: "PASS", Text: "other gate of " + name}}}
		part.Section("Results").Blocks = []doc.Block{{Listing: []string{"Requests: 3"}}}
		part.Data = doc.Data{Columns: []string{"run", "requests"}, Rows: [][]string{{name, "3"}}}
		d.Parts = append(d.Parts, part)
	}
	return d
}

var writers = map[string]func(d *doc.Document, w io.Writer) error{
	"text": (*doc.Document).WriteText, "Markdown": (*doc.Document).WriteMarkdown, "CSV": (*doc.Document).WriteCSV, "HTML": (*doc.Document).WriteHTML,
}

func written(t *testing.T, d *doc.Document, name string) string {
	t.Helper()
	var b bytes.Buffer
	if err := writers[name](d, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A page shows the checks that failed before those that passed, which are folded only
// if all did.
func TestPageFoldsPassedChecks(t *testing.T) {
	page := written(t, full(), "HTML")
	for _, name := range []string{"one", "two"} {
		failed, passed := strings.Index(page, "evidence of "+name), strings.Index(page, "other evidence of "+name)
		fold := strings.LastIndex(page[:passed], "<details open><summary>1 check passed</summary>")
		if fold < failed || strings.Contains(page[fold:passed], "</details>") {
			t.Errorf("%s: failed at %d, folded at %d, passed at %d", name, failed, fold, passed)
		}
	}
}

func TestPageFoldsValidEvidence(t *testing.T) {
	d := doc.New("REPORT", "")
	d.Verdict = &doc.Verdict{Level: "VALID", Evidence: []doc.Evidence{{Level: "VALID", Text: "a"}, {Level: "VALID", Text: "b"}}}
	if page := written(t, d, "HTML"); !strings.Contains(page, "<details><summary>2 checks passed</summary>") {
		t.Errorf("open: %s", page)
	}
}

// The result comes first, then whether it counts, then the rest.
func TestPageOrder(t *testing.T) {
	d := full()
	d.Headlines = []doc.KeyValue{{Key: "P99 TTFT", Value: "2.5", Unit: "s", Note: "median 300 ms"}}
	d.Gates, d.Verdict = &doc.Verdict{Level: "PASS"}, &doc.Verdict{Level: "VALID"}
	lead := d.Section("The answer")
	lead.Lead = true
	lead.Text("Yes, it is.")
	page, last := written(t, d, "HTML"), 0
	page = page[strings.Index(page, "</head>"):]
	for _, want := range []string{"P99 TTFT", "2.5", "median 300 ms", "The answer", "Yes, it is.", "Gates: PASS", "Verdict: VALID", "a note of the document", "<h2>First", "<svg"} {
		at := strings.Index(page, want)
		if at < last {
			t.Errorf("%q is at %d, what should be above at %d", want, at, last)
		}
		last = at
	}
}

func TestCSVIsRectangular(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(written(t, full(), "CSV"))).ReadAll()
	if err != nil || len(rows) != 3 || rows[0][2] != "notes" || !strings.Contains(rows[2][2], "of two") {
		t.Errorf("%q, %v", rows, err)
	}
	d := doc.New("", "")
	d.Data = doc.Data{Columns: []string{"a"}, Rows: [][]string{{"1"}}}
	if got := written(t, d, "CSV"); got != "a\n1\n" {
		t.Errorf("without notes: %q", got)
	}
}

// Rows of parts with different columns are below those of all parts, with their notes.
func TestCSVOfDifferentParts(t *testing.T) {
	d := doc.New("T", "")
	for _, columns := range [][]string{{"run"}, {"run", "gates", "rate"}, {"run", "rate"}} {
		part := &doc.Document{Data: doc.Data{Columns: columns, Rows: [][]string{columns}}}
		part.Note("Note", fmt.Sprint(len(columns), " columns."))
		d.Parts = append(d.Parts, part)
	}
	want := "run,gates,rate,notes\nrun,,,Note: 1 columns.\nrun,gates,rate,Note: 3 columns.\nrun,,rate,Note: 2 columns.\n"
	if got := written(t, d, "CSV"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// Text that a spreadsheet would run is quoted; numbers are not.
func TestCSVGuardsFormulas(t *testing.T) {
	var d doc.Document
	d.Data.Columns = []string{"=name", "value"}
	for _, cell := range []string{"=1+1", "+cmd", "-cmd", "@sum", "\t=1", "\r=1", " =1", "-1.5", "+2", "a=b", ""} {
		d.Data.Add(cell, -1.5)
	}
	d.Note("", "=HYPERLINK()")
	var b strings.Builder
	if err := d.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	want := "'=name,value,notes\n'=1+1,-1.5,'=HYPERLINK()\n'+cmd,-1.5,\n'-cmd,-1.5,\n'@sum,-1.5,\n'=1,-1.5,\n'=1,-1.5,\n'=1,-1.5,\n-1.5,-1.5,\n+2,-1.5,\na=b,-1.5,\n,-1.5,\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// A page of many large figures has less detail, not more bytes.
func TestPageSize(t *testing.T) {
	d := doc.New("REPORT", "")
	noise := rand.New(rand.NewPCG(1, 2))
	for range 16 {
		line, dots := figure.Series{Kind: figure.Line}, figure.Series{Kind: figure.Points}
		for i := range 5000 {
			line.X, line.Y = append(line.X, float64(i)), append(line.Y, noise.Float64())
			dots.X, dots.Y = append(dots.X, noise.ExpFloat64()), append(dots.Y, noise.ExpFloat64())
		}
		s := d.Section("Figures")
		s.Figures(figure.Figure{Title: "line", Series: []figure.Series{line}})
		s.Figures(figure.Figure{Title: "dots", Series: []figure.Series{dots}})
	}
	page := written(t, d, "HTML")
	if len(page) > 500_000 || strings.Count(page, "<svg") != 32 {
		t.Errorf("%d bytes, %d figures", len(page), strings.Count(page, "<svg"))
	}
}

// Colour adds nothing but itself, and only where asked for.
func TestColor(t *testing.T) {
	var plain, colored bytes.Buffer
	if err := errors.Join((doc.Terminal{}).Write(&plain, full()), (doc.Terminal{Color: true}).Write(&colored, full())); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Verdict: \x1b[33mSUSPECT\x1b[m", "Gates: \x1b[31mFAIL\x1b[m", "\x1b[32mpass    \x1b[m other gate", "\x1b[33mWarning\x1b[m: a warning"} {
		if !strings.Contains(colored.String(), want) {
			t.Errorf("no %q in\n%q", want, colored.String())
		}
	}
	bare := strings.NewReplacer("\x1b[m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "").Replace(colored.String())
	if bare != plain.String() {
		t.Errorf("in colour %q, without %q", bare, plain.String())
	}
}
