package doc

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
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

// WriteCSV writes the numbers of the document and of its parts as one table, with the
// columns of all. Notes, verdicts and warnings go in a last column: those of a part in its
// first row, those of the document in the very first row.
func (d *Document) WriteCSV(w io.Writer) error {
	columns, rows, notes := d.csvRows()
	if len(notes) > 0 {
		columns = append(columns, "notes")
	}
	out := csv.NewWriter(w)
	out.Write(csvCells(slices.Clone(columns)))
	for i, row := range rows {
		cells := make([]string, len(columns))
		if len(notes) > 0 {
			cells[len(columns)-1] = notes[i]
		}
		copy(cells, row)
		out.Write(csvCells(cells))
	}
	if out.Flush(); out.Error() != nil {
		return fmt.Errorf("writing report: %w", out.Error())
	}
	return nil
}

// csvCells makes cells safe in place. A spreadsheet would run text that begins with
// one of =+-@ as a formula; an apostrophe prevents that.
func csvCells(cells []string) []string {
	for i, cell := range cells {
		cells[i] = Clean(cell)
		if _, err := strconv.ParseFloat(cells[i], 64); err != nil && cells[i] != "" && strings.Contains("=+-@", cells[i][:1]) {
			cells[i] = "'" + cells[i]
		}
	}
	return cells
}

// csvRows returns the rows of the document and its parts, and notes by row. Rows may lack
// the last columns.
func (d *Document) csvRows() (columns []string, rows [][]string, notes map[int]string) {
	columns, rows, notes = slices.Clone(d.Data.Columns), slices.Clone(d.Data.Rows), map[int]string{}
	for _, part := range d.Parts {
		partColumns, partRows, partNotes := part.csvRows()
		for i, text := range partNotes {
			notes[len(rows)+i] = text
		}
		var at []int // of the part's columns in all
		for _, column := range partColumns {
			if !slices.Contains(columns, column) {
				columns = append(columns, column)
			}
			at = append(at, slices.Index(columns, column))
		}
		for _, row := range partRows {
			cells := make([]string, len(columns))
			for i, cell := range row {
				cells[at[i]] = cell
			}
			rows = append(rows, cells)
		}
	}
	if all := d.allNotes(); len(all) > 0 {
		if rows == nil {
			rows = [][]string{nil}
		}
		notes[0] = strings.TrimSuffix(strings.Join(append(all, notes[0]), "; "), "; ")
	}
	return columns, rows, notes
}
