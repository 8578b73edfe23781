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
		Columns []string
		Rows    [][]string
	}
	htmlPart struct {
		Rows      []htmlRow
		Paragraph string
		Table     *htmlTable
		Figure    template.HTML
	}
	htmlSection struct {
		Title string
		Parts []htmlPart
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
		page.Sections = append(page.Sections, htmlSection{s.title, htmlParts(s.parts)})
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, page); err != nil {
		return nil, fmt.Errorf("writing page: %w", err)
	}
	return b.Bytes(), nil
}

// htmlParts joins the rows that follow each other to one table.
func htmlParts(parts []part) []htmlPart {
	var out []htmlPart
	inRows := false
	for _, p := range parts {
		if p.row != nil {
			if !inRows {
				out = append(out, htmlPart{})
			}
			last := &out[len(out)-1]
			last.Rows = append(last.Rows, htmlRow{p.row.label, p.row.value, p.row.unit, p.row.note})
		}
		inRows = p.row != nil
		switch {
		case p.paragraph != "":
			out = append(out, htmlPart{Paragraph: p.paragraph})
		case p.table != nil:
			out = append(out, htmlPart{Table: &htmlTable{p.table.columns, p.table.rows}})
		case p.figure != nil:
			out = append(out, htmlPart{Figure: template.HTML(figure.SVG(figure.One(*p.figure), figure.Options{}))})
		}
	}
	return out
}
