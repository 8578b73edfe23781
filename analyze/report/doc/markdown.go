package doc

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes the document as GitHub Markdown.
func (d *Document) WriteMarkdown(w io.Writer) error {
	var b markdownWriter
	b.document(d, "#")
	return write(w, b.Bytes())
}

type markdownWriter struct{ bytes.Buffer }

func (b *markdownWriter) document(d *Document, level string) {
	if d.Title != "" {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(b, "%s %s\n", level, escapeMarkdown(titleCase(d.Title)))
		level += "#"
	}
	b.paragraph(d.Subject)
	for _, v := range d.Outcomes() {
		fmt.Fprintf(b, "\n%s %s: %s\n\n", level, v.Title, v.Level)
		t := Table{Columns: []string{"", "Evidence"}, Left: AllLeft}
		for _, e := range v.Evidence {
			t.Add(e.Level, e.Text)
		}
		if len(t.Rows) > 0 {
			b.table(&t)
		}
	}
	for _, n := range d.Notes {
		b.paragraph(n.String())
	}
	for _, s := range d.Sections {
		if s.hasText() && !s.onlyListing() {
			if s.Title != "" {
				fmt.Fprintf(b, "\n%s %s\n", level, escapeMarkdown(s.Title))
			}
			b.blocks(s.Blocks)
		}
	}
	for _, part := range d.Parts {
		b.document(part, level)
	}
}

func (s *Section) onlyListing() bool { return len(s.Blocks) == 1 && s.Blocks[0].Listing != nil }

func (b *markdownWriter) blocks(blocks []Block) {
	for _, block := range blocks {
		switch {
		case block.Paragraph != "":
			b.paragraph(block.Paragraph)
		case block.Note != nil:
			b.paragraph(block.Note.String())
		case block.KeyValues != nil:
			b.WriteString("\n| | value | unit | |\n| --- | ---: | --- | --- |\n")
			for _, r := range block.KeyValues {
				b.row(r.Key, r.Value, r.Unit, r.Note)
			}
		case block.Table != nil:
			b.WriteByte('\n')
			b.table(block.Table)
		}
	}
}

func (b *markdownWriter) paragraph(text string) {
	if text != "" {
		fmt.Fprintf(b, "\n%s\n", escapeMarkdown(text))
	}
}

func (b *markdownWriter) table(t *Table) {
	b.row(t.Columns...)
	for i := range t.Columns {
		if i < t.Left {
			b.WriteString("| --- ")
		} else {
			b.WriteString("| ---: ")
		}
	}
	b.WriteString("|\n")
	for _, row := range t.Rows {
		b.row(row...)
	}
}

func (b *markdownWriter) row(cells ...string) {
	for _, cell := range cells {
		b.WriteString("| " + escapeMarkdown(cell) + " ")
	}
	b.WriteString("|\n")
}

var markdownEscapes = strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`)

func escapeMarkdown(s string) string { return markdownEscapes.Replace(Clean(s)) }

func titleCase(s string) string {
	s = Clean(s)
	if s == "" || s != strings.ToUpper(s) {
		return s
	}
	return s[:1] + strings.ToLower(s[1:])
}
