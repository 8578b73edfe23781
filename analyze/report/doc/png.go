package doc

import (
	"io"
	"slices"
	"strings"

	"moontide/analyze/report/figure"
)

// WritePNG draws the figures of the document and of its parts, except those of
// [Section.PageOnly], two side by side. It names verdicts, and what is simulated or
// estimated.
func (d *Document) WritePNG(w io.Writer) error {
	title := titleCase(d.Title)
	if d.Verdict != nil {
		title += ": " + d.Verdict.Level
	}
	return figure.WritePNG(w, figure.Sheet{
		Title: title, Note: strings.Join(append([]string{Clean(d.Subject)}, d.remarks()...), "; "), Rows: d.rows(),
	})
}

// rows returns the figures two by two, those of each part below its title and verdict.
func (d *Document) rows() (rows []figure.Row) {
	var figures []figure.Figure
	for _, s := range d.Sections {
		for _, b := range s.Blocks {
			if !s.PageOnly {
				figures = append(figures, b.Figures...)
			}
		}
	}
	for pair := range slices.Chunk(figures, 2) {
		rows = append(rows, figure.Row{Figures: pair})
	}
	for _, part := range d.Parts {
		label := part.remarks()
		if part.Verdict != nil {
			label = slices.Insert(label, 0, part.Verdict.Level)
		}
		if part.Title != "" {
			label = slices.Insert(label, 0, Clean(part.Title))
		}
		below := part.rows()
		if len(below) > 0 {
			below[0].Label = strings.Join(label, " – ")
		}
		rows = append(rows, below...)
	}
	return rows
}

// remarks returns the notes that a picture must have.
func (d *Document) remarks() (all []string) {
	notes := d.Notes
	for _, s := range d.Sections {
		notes = slices.Concat(notes, s.notes())
	}
	for _, n := range notes {
		if n.Kind == "Simulated" || n.Kind == "Estimated" {
			all = append(all, n.String())
		}
	}
	return all
}
