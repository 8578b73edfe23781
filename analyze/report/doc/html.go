package doc

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"sync"

	"moontide/analyze/report/figure"
)

//go:embed page.html
var pageSource string

// pageFigure is legible with two figures side by side, or one on a phone.
var pageFigure = figure.Options{Width: 430, PlotHeight: 210}

// pageTemplate escapes all text; figures escape their own.
var pageTemplate = sync.OnceValues(func() (*template.Template, error) {
	return template.New("page").Funcs(template.FuncMap{
		"clean": Clean,
		"title": titleCase,
		"worstFirst": func(all []Evidence) []Evidence {
			return slices.SortedStableFunc(slices.Values(all), func(a, b Evidence) int {
				return cmp.Compare(slices.Index(levels, a.Level), slices.Index(levels, b.Level))
			})
		},
		"svg": func(f figure.Figure) template.HTML {
			return template.HTML(figure.SVG(figure.One(f), pageFigure))
		},
		"part": func(title string, d *Document) part {
			if title != "" {
				title = Clean(title) + ": "
			}
			return part{title, d}
		},
	}).Parse(pageSource)
})

// part is a document whose section titles have a prefix.
type part struct {
	Prefix string
	*Document
}

// levels lists the evidence levels, worst first.
var levels = []string{"INVALID", "FAIL", "SUSPECT", "VALID", "PASS"}

// WriteHTML writes the document as one self-contained page without scripts.
func (d *Document) WriteHTML(w io.Writer) error {
	page, err := pageTemplate()
	if err != nil {
		return fmt.Errorf("reading the page template: %w", err)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, d); err != nil {
		return fmt.Errorf("writing page: %w", err)
	}
	return write(w, b.Bytes())
}

// Words reports whether all columns are words, which may be wrapped.
func (t *Table) Words() bool { return t.Left >= len(t.Columns) }

// OnPage reports whether the section has content on a page.
func (s *Section) OnPage() bool { return len(s.Blocks) > 0 && !s.onlyListing() }
