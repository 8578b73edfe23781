package doc

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"sync"

	"moontide/analyze/report/figure"
)

//go:embed page.css
var pageStyle string

//go:embed page.js
var pageScript string

// policy lets a page run its own script alone, and load nothing.
var policy = sync.OnceValue(func() string {
	sum := sha256.Sum256([]byte(pageScript))
	return "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
})

// page is an HTML page. It is written without html/template, which calls methods
// by name: the linker would keep every exported method of every package.
type page struct{ bytes.Buffer }

// add appends markup with texts in the place of its %s, cleaned and escaped. It
// is the only way for a text to get on the page; figures escape their own.
func (p *page) add(markup string, texts ...string) {
	escaped := make([]any, len(texts))
	for i, text := range texts {
		escaped[i] = html.EscapeString(Clean(text))
	}
	fmt.Fprintf(p, markup, escaped...)
}

// levels lists the evidence levels, worst first; those from VALID on are passed
// checks.
var levels = []string{"INVALID", "FAIL", "SUSPECT", "VALID", "PASS"}

// WriteHTML writes the document as one self-contained page. It is complete without its
// script, which shows values below the pointer, zooms figures, and hides series.
func (d *Document) WriteHTML(w io.Writer) error {
	body := d.body()
	var head page
	title := titleCase(d.Title)
	head.add(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="moontide">
<meta http-equiv="Content-Security-Policy" content="`+policy()+`">
<title>%s`, title)
	if d.Subject != "" {
		head.add(": %s", d.Subject)
	}
	head.WriteString("</title>\n<style>\n" + pageStyle + "</style>\n</head>\n")
	return write(w, append(head.Bytes(), body.Bytes()...))
}

// body returns the body of a page.
func (d *Document) body() *page {
	var p page
	p.add("<body>\n<h1>%s</h1>\n", titleCase(d.Title))
	if d.Subject != "" {
		p.add("<p class=\"subject\">%s</p>\n", d.Subject)
	}
	p.content(d, "h2")
	p.WriteString("<script>" + pageScript + "</script>\n</body>\n</html>\n")
	return &p
}

// content appends a document with headings of a level: first the result, then whether
// it counts, then everything else.
func (p *page) content(d *Document, heading string) {
	p.headlines(d.Headlines)
	p.sections(d, heading, true)
	for _, v := range slices.Backward(d.Outcomes()) { // gates before the verdict
		p.add("<"+heading+" class=\"%s\">%s: %s</"+heading+">\n", v.Level, v.Title, v.Level)
		p.evidence(v)
	}
	for _, n := range d.Notes {
		p.note(n)
	}
	p.sections(d, heading, false)
	for _, part := range d.Parts {
		below := heading
		if part.Title != "" {
			p.add("<h2 class=\"part\">%s</h2>\n", part.Title)
			below = "h3"
		}
		p.content(part, below)
	}
}

func (p *page) sections(d *Document, heading string, lead bool) {
	for _, s := range d.Sections {
		if s.Lead != lead || len(s.Blocks) == 0 || s.onlyListing() {
			continue
		}
		if s.Title != "" {
			p.add("<"+heading+">%s</"+heading+">\n", s.Title)
		}
		for _, b := range s.Blocks {
			p.block(b)
		}
	}
}

func (p *page) headlines(all []KeyValue) {
	if len(all) == 0 {
		return
	}
	p.add("<div class=\"headlines\">\n")
	for _, h := range all {
		p.add("<div><span>%s</span><strong>%s <small>%s</small></strong><span>%s</span></div>\n", h.Key, h.Value, h.Unit, h.Note)
	}
	p.add("</div>\n")
}

func (p *page) note(n Note) { p.add("<p class=\"note\">%s</p>\n", n.String()) }

// evidence shows the checks that did not pass, worst first, and then the others, which
// are folded if all passed.
func (p *page) evidence(v Outcome) {
	rank := func(e Evidence) int { return slices.Index(levels, e.Level) }
	sorted := slices.SortedStableFunc(slices.Values(v.Evidence), func(a, b Evidence) int { return cmp.Compare(rank(a), rank(b)) })
	valid := slices.Index(levels, "VALID")
	failed := 0
	for failed < len(sorted) && rank(sorted[failed]) < valid {
		failed++
	}
	open := ""
	if slices.Index(levels, v.Level) < valid {
		open = " open"
	}
	p.checks(sorted[:failed])
	if passed := sorted[failed:]; len(passed) > 0 {
		p.add("<details"+open+"><summary>%s passed</summary>\n", Count(len(passed), "check"))
		p.checks(passed)
		p.add("</details>\n")
	}
}

func (p *page) checks(all []Evidence) {
	if len(all) == 0 {
		return
	}
	p.add("<div class=wide><table class=\"words levels\">\n")
	for _, e := range all {
		p.add("<tr><td class=\"%s\">%s<td>%s\n", e.Level, e.Level, e.Text)
	}
	p.add("</table></div>\n")
}

// block appends the field of the block that is set; pages have no listings.
func (p *page) block(b Block) {
	switch {
	case b.Paragraph != "":
		p.add("<p>%s</p>\n", b.Paragraph)
	case b.Note != nil:
		p.note(*b.Note)
	case len(b.KeyValues) > 0:
		p.keyValues(b.KeyValues)
	case b.Table != nil:
		p.table(b.Table)
	case len(b.Figures) > 0:
		p.add("<div class=figures>\n")
		for _, f := range b.Figures {
			p.WriteString(figure.SVG(f))
		}
		p.add("</div>\n")
	}
}

// keyValues appends rows without the end tags that HTML does not need, and without
// empty cells at the end.
func (p *page) keyValues(all []KeyValue) {
	p.add("<div class=wide><table class=rows>\n")
	for _, kv := range all {
		p.add("<tr><td>%s<td>%s", kv.Key, kv.Value)
		if kv.Unit != "" || kv.Note != "" {
			p.add("<td>%s", kv.Unit)
		}
		if kv.Note != "" {
			p.add("<td>%s", kv.Note)
		}
		p.WriteByte('\n')
	}
	p.add("</table></div>\n")
}

// wideTable is how many letters a table may be wide before it is set in smaller ones.
const wideTable = 110

// table appends a table.
func (p *page) table(t *Table) {
	class := ""
	if _, width := columnWidths(cleanRows(t)); t.Words() {
		class = "words"
	} else if width > wideTable {
		class = "dense"
	}
	cell := make([]string, len(t.Columns))
	for i := range cell {
		if cell[i] = "<td>"; i > 0 && i < t.Left {
			cell[i] = "<td class=w>"
		}
	}
	p.add("<div class=wide><table class=\"%s\">\n<tr>", class)
	for i, column := range t.Columns {
		p.add(strings.Replace(cell[i], "td", "th", 1)+"%s", column)
	}
	for _, row := range t.Rows {
		p.add("\n<tr>")
		for i, text := range row {
			p.add(cell[min(i, len(cell)-1)]+"%s", text)
		}
	}
	p.add("\n</table></div>\n")
}

// Words reports whether all columns are words, which may be wrapped.
func (t *Table) Words() bool { return t.Left >= len(t.Columns) }

// WritePNG draws the figures of the sections, except those of [Section.PageOnly], two side
// by side: of a document without any, those of its parts. It names verdicts, and what is
// simulated or estimated.
func (d *Document) WritePNG(w io.Writer) error {
	notes := append([]string{Clean(d.Subject)}, d.remarks()...)
	figures := d.figures()
	for _, part := range d.Parts {
		if len(d.Sections) == 0 {
			figures = append(figures, part.figures()...)
		}
		notes = append(notes, part.remarks()...)
	}
	return figure.WritePNG(w, figure.Sheet{Title: titleCase(d.Title), Note: strings.Join(notes, "; "), Figures: figures})
}

func (d *Document) figures() (figures []figure.Figure) {
	for _, s := range d.Sections {
		for _, b := range s.Blocks {
			if !s.PageOnly {
				figures = append(figures, b.Figures...)
			}
		}
	}
	return figures
}

// remarks returns the verdict and the notes that a picture must have.
func (d *Document) remarks() (all []string) {
	if d.Verdict != nil {
		all = append(all, strings.TrimPrefix(Clean(d.Title)+": "+d.Verdict.Level, ": "))
	}
	notes := d.Notes
	for _, s := range d.Sections {
		notes = slices.Concat(notes, s.notes())
	}
	for _, n := range notes {
		if text := n.String(); (n.Kind == "Simulated" || n.Kind == "Estimated") && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}
