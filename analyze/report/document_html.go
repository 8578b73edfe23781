package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"

	"moontide/analyze/report/figure"
)

//go:embed page.html
var pageSource string

// pageTemplate escapes all that it did not write itself; figures escape their
// own texts.
var pageTemplate = template.Must(template.New("page").Parse(pageSource))

type (
	htmlRow   struct{ Label, Value, Unit, Note string }
	htmlTable struct {
		Words, Levels bool
		Columns       []string
		Rows          [][]string
	}
	htmlPart struct {
		Rows, Headlines []htmlRow
		Paragraph       string
		Table           *htmlTable
		Figures         []template.HTML
	}
	htmlSection struct {
		Title, Level string
		Parts        []htmlPart
	}
	htmlPage struct {
		Title, Subject string
		Sections       []htmlSection
	}
)

// html writes the document as one page that needs nothing else: no script, no
// network.
func (d *document) html() ([]byte, error) {
	page := htmlPage{Title: titleCase(d.title), Subject: oneLine(d.subject)}
	for _, s := range d.sections {
		page.Sections = append(page.Sections, htmlSection{s.title, s.level, htmlParts(s.parts)})
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, page); err != nil {
		return nil, fmt.Errorf("writing page: %w", err)
	}
	return b.Bytes(), nil
}

// pageFigure is the size of a figure on a page: its letters are legible where
// two stand side by side, and one on a phone.
var pageFigure = figure.Options{Width: 430, PlotHeight: 210}

// htmlParts joins the rows that follow each other to one table, and figures to
// one group.
func htmlParts(parts []part) []htmlPart {
	var out []htmlPart
	for i, p := range parts {
		follows := i > 0 && (p.row != nil && parts[i-1].row != nil || p.figure != nil && parts[i-1].figure != nil)
		if !follows {
			out = append(out, htmlPart{})
		}
		last := &out[len(out)-1]
		switch {
		case p.row != nil:
			last.Rows = append(last.Rows, htmlRow{p.row.label, p.row.value, p.row.unit, p.row.note})
		case p.paragraph != "":
			last.Paragraph = p.paragraph
		case p.table != nil:
			last.Table = &htmlTable{p.table.words, p.table.levels, p.table.columns, p.table.rows}
		case p.headlines != nil:
			for _, h := range p.headlines {
				last.Headlines = append(last.Headlines, htmlRow{h.label, h.value, h.unit, h.note})
			}
		case p.figure != nil:
			last.Figures = append(last.Figures, template.HTML(figure.SVG(figure.One(*p.figure), pageFigure)))
		}
	}
	return out
}
