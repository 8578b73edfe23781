package doc

import (
	"io"
	"slices"
	"strings"

	"moontide/analyze/report/figure"
)

// WritePNG draws the figures of the sections, except those of [Section.PageOnly], two side
// by side: of a document without any, those of its parts. It names verdicts, and what is
// simulated or estimated.
func (d *Document) WritePNG(w io.Writer) error {
	notes := append([]string{Clean(d.Subject)}, d.remarks()...)
	figures := d.pictured()
	for _, part := range d.Parts {
		if len(d.Sections) == 0 {
			figures = append(figures, part.pictured()...)
		}
		notes = append(notes, part.remarks()...)
	}
	return figure.WritePNG(w, figure.Sheet{Title: titleCase(d.Title), Note: strings.Join(notes, "; "), Figures: figures})
}

func (d *Document) pictured() (figures []figure.Figure) {
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
