package report

import (
	"strings"

	"moontide/analyze/report/figure"
)

// document is what a report says, before it is known how it will look: text,
// Markdown or a page are three ways to write one.
type document struct {
	title    string
	subject  string // what it is about, in a line
	sections []section
}

type section struct {
	title string
	level string // of a verdict that the section is about, or ""
	parts []part
}

// onlyFigures reports whether nothing of the section can be written as text.
func (s section) onlyFigures() bool {
	for _, p := range s.parts {
		if p.figure == nil {
			return false
		}
	}
	return len(s.parts) > 0
}

// part is one of a row, a paragraph, a table, a figure, headlines, which only a
// page shows, or, if none, a pause.
type part struct {
	row       *valueRow
	paragraph string
	table     *table
	figure    *figure.Figure
	headlines []headline
}

// valueRow is a named value with its unit and a note of a few words.
type valueRow struct{ label, value, unit, note string }

// headline is a value that a page shows large, and a few words under it.
type headline struct{ label, value, unit, note string }

// table has a heading for each column; the first is text, the others are
// numbers or, all of them, words. Those of levels begin with that of a verdict.
type table struct {
	columns []string
	rows    [][]string
	words   bool
	levels  bool
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (d *document) section(title string) {
	d.sections = append(d.sections, section{title: title})
}

func (d *document) append(p part) {
	last := &d.sections[len(d.sections)-1]
	last.parts = append(last.parts, p)
}

// row adds a value to the last section. Text has 23 columns for the note.
func (d *document) row(label, value, unit, note string) {
	if value == "1" && (unit == "tokens" || unit == "blocks") {
		unit = strings.TrimSuffix(unit, "s")
	}
	d.append(part{row: &valueRow{label, value, unit, note}})
}

// paragraph adds sentences to the last section.
func (d *document) paragraph(sentences ...string) {
	text := ""
	for i, s := range sentences {
		if i > 0 {
			text += " "
		}
		text += s
	}
	d.append(part{paragraph: text})
}

func (d *document) table(t table)          { d.append(part{table: &t}) }
func (d *document) figure(f figure.Figure) { d.append(part{figure: &f}) }
func (d *document) pause()                 { d.append(part{}) }
