package report

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// textWidth is the width of a text report in columns.
const textWidth = 80

// text writes the document for a terminal, without its figures.
func (d *document) text() []byte {
	var b textWriter
	fmt.Fprintf(&b, "%s\n%s\n%s\n", d.title, strings.Repeat("=", textWidth), oneLine(d.subject))
	for _, s := range d.sections {
		if s.onlyFigures() {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n%s\n", s.title, strings.Repeat("-", textWidth))
		for _, p := range s.parts {
			switch {
			case p.row != nil:
				b.row(*p.row)
			case p.paragraph != "":
				b.paragraph(p.paragraph)
			case p.table != nil:
				b.table(*p.table)
			case p.figure == nil:
				b.WriteByte('\n')
			}
		}
	}
	return b.Bytes()
}

type textWriter struct{ bytes.Buffer }

func (b *textWriter) row(r valueRow) {
	line := fmt.Sprintf("  %-32s%15s %-7s%s", r.label, r.value, r.unit, r.note)
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// paragraph breaks a text between words.
func (b *textWriter) paragraph(text string) {
	column := 0
	for _, word := range strings.Fields(text) {
		switch {
		case column == 0:
			b.WriteString("  ")
			column = 2
		case column+1+len(word) > textWidth:
			b.WriteString("\n  ")
			column = 2
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	b.WriteByte('\n')
}

// table aligns columns, words to the left.
func (b *textWriter) table(t table) {
	widths := make([]int, len(t.columns))
	for _, row := range append([][]string{t.columns}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	line := func(row []string) {
		out := " "
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch {
			case i == 0:
				out += " " + cell + pad
			case t.words:
				out += "  " + cell + pad
			default:
				out += "  " + pad + cell
			}
		}
		b.WriteString(strings.TrimRight(out, " ") + "\n")
	}
	line(t.columns)
	for _, row := range t.rows {
		line(row)
	}
}
