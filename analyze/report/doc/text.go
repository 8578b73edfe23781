package doc

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	textWidth = 80
	// A table wider than this is narrowed by breaking headings at headingWidth or,
	// if that is not enough, written in several parts.
	mostTableWidth = 112
	headingWidth   = 12
)

// WriteText writes the document for a terminal of 80 columns; some tables are wider.
func (d *Document) WriteText(w io.Writer) error {
	var b textWriter
	b.document(d)
	return write(w, b.Bytes())
}

func write(w io.Writer, text []byte) error {
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	return nil
}

type textWriter struct{ bytes.Buffer }

func (b *textWriter) gap() {
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
}

func (b *textWriter) document(d *Document) {
	if d.Title != "" && !d.ListingFirst {
		b.gap()
		fmt.Fprintf(b, "%s\n%s\n", Clean(d.Title), strings.Repeat("=", textWidth))
		if d.Subject != "" {
			b.wrap(d.Subject, "", "")
		}
	}
	var notes []Note
	for _, s := range d.Sections {
		switch {
		case s.Detail:
			notes = append(notes, s.notes()...)
		case s.hasText():
			b.section(s)
		}
	}
	if notes = append(notes, d.Notes...); len(notes) > 0 {
		b.gap()
	}
	for _, n := range notes {
		b.wrap(n.String(), "", "  ")
	}
	for _, v := range d.Outcomes() {
		b.gap()
		fmt.Fprintf(b, "%s: %s\n", v.Title, v.Level)
		for _, e := range v.Evidence {
			b.wrap(e.Text, fmt.Sprintf("  %-8s ", strings.ToLower(e.Level)), strings.Repeat(" ", 11))
		}
	}
	for _, part := range d.Parts {
		b.document(part)
	}
}

func (b *textWriter) section(s *Section) {
	if s.Title != "" {
		b.gap()
		fmt.Fprintf(b, "%s\n%s\n", Clean(s.Title), strings.Repeat("-", textWidth))
	}
	first := true
	for _, block := range s.Blocks {
		if block.Figures != nil {
			continue
		}
		if !first || s.Title == "" {
			b.gap()
		}
		first = false
		switch {
		case block.Paragraph != "":
			b.wrap(block.Paragraph, "  ", "  ")
		case block.Note != nil:
			b.wrap(block.Note.String(), "  ", "  ")
		case block.KeyValues != nil:
			b.keyValues(block.KeyValues)
		case block.Table != nil:
			b.table(block.Table)
		case block.Listing != nil:
			for _, line := range block.Listing {
				b.line(line)
			}
		}
	}
}

// wrap wraps a text between words, with these prefixes.
func (b *textWriter) wrap(text, first, others string) {
	b.WriteString(first)
	column, begun := utf8.RuneCountInString(first), false
	for _, word := range strings.Fields(Clean(text)) {
		width := utf8.RuneCountInString(word)
		switch {
		case begun && column+1+width > textWidth:
			b.WriteString("\n" + others)
			column = len(others)
		case begun:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column, begun = column+width, true
	}
	b.WriteByte('\n')
}

func (b *textWriter) keyValues(rows []KeyValue) {
	units := 1 // width of the column of units
	if slices.ContainsFunc(rows, func(r KeyValue) bool { return r.Unit != "" }) {
		units = 7
	}
	for _, r := range rows {
		line := fmt.Sprintf("  %-32s%15s %-*s", Clean(r.Key), Clean(r.Value), units, r.Unit)
		note := Clean(r.Note)
		if utf8.RuneCountInString(line)+utf8.RuneCountInString(note) <= textWidth {
			b.line(line + note)
			continue
		}
		b.line(line)
		b.wrap(note, "      ", "      ")
	}
}

func (b *textWriter) line(s string) { b.WriteString(strings.TrimRight(s, " ") + "\n") }

// table writes a table that is too wide in parts that start with the first column.
func (b *textWriter) table(t *Table) {
	rows := cleanRows(t)
	widths, total := columnWidths(rows)
	switch {
	case total <= textWidth || total <= mostTableWidth && !t.Words():
		b.rows(rows, widths, t.Left)
		return
	case t.Words():
		b.words(rows, widths)
		return
	}
	rows = append(wrapHeadings(rows[0], headingWidth), rows[1:]...)
	widths, total = columnWidths(rows)
	parts := 1
	if total > mostTableWidth {
		parts = (total + textWidth - 1) / textWidth
	}
	columns := (len(widths) + parts - 2) / parts // per part, without the first
	for begin := 1; begin < len(widths); begin += columns {
		end := min(begin+columns, len(widths))
		part := make([][]string, len(rows))
		for i, row := range rows {
			part[i] = append([]string{row[0]}, row[begin:end]...)
		}
		if begin > 1 {
			b.gap()
		}
		b.rows(part, append([]int{widths[0]}, widths[begin:end]...), t.Left)
	}
}

// words wraps the last column of a table of words.
func (b *textWriter) words(rows [][]string, widths []int) {
	last := len(widths) - 1
	for _, row := range rows {
		first := ""
		for i, cell := range row[:last] {
			first += fmt.Sprintf("  %-*s", widths[i], cell)
		}
		first += "  "
		b.wrap(row[last], first, strings.Repeat(" ", min(utf8.RuneCountInString(first), textWidth/2)))
	}
}

func cleanRows(t *Table) [][]string {
	var rows [][]string
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = cleanCell(cell)
		}
		rows = append(rows, cells)
	}
	return rows
}

// cleanCell keeps trailing spaces, which align the cell with those that end in a
// mark.
func cleanCell(cell string) string {
	text := Clean(cell)
	if kept := len(cell) - len(strings.TrimRight(cell, " ")); text != "" && kept > 0 {
		text += strings.Repeat(" ", kept)
	}
	return text
}

func columnWidths(rows [][]string) (widths []int, total int) {
	widths = make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, width := range widths {
		total += 2 + width
	}
	return widths, total
}

func (b *textWriter) rows(rows [][]string, widths []int, left int) {
	for _, row := range rows {
		if strings.Join(row, "") == "" {
			continue // a heading line that this part does not need
		}
		var line strings.Builder
		for i := range row {
			width := widths[i]
			if i < left {
				width = -width
			}
			fmt.Fprintf(&line, "  %*s", width, row[i])
		}
		b.line(line.String())
	}
}

// wrapHeadings wraps headings between words into rows.
func wrapHeadings(columns []string, width int) [][]string {
	lines := make([][]string, len(columns))
	most := 1
	for i, column := range columns {
		for _, word := range strings.Fields(column) {
			last := len(lines[i]) - 1
			if last >= 0 && utf8.RuneCountInString(lines[i][last]+word) < width {
				lines[i][last] += " " + word
			} else {
				lines[i] = append(lines[i], word)
			}
		}
		most = max(most, len(lines[i]))
	}
	rows := make([][]string, most)
	for r := range rows {
		rows[r] = make([]string, len(columns))
		for i, parts := range lines {
			if skip := most - len(parts); r >= skip {
				rows[r][i] = parts[r-skip]
			}
		}
	}
	return rows
}
