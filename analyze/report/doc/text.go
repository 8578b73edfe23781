package doc

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	defaultWidth = 80
	mostProse    = 100 // columns of a paragraph on a wide terminal
)

// Terminal is the layout of text. The zero value is 80 columns without colour.
type Terminal struct {
	// Width is the number of columns, 80 if 0. No line is wider, except for a single
	// word that is. Paragraphs take at most 100 columns.
	Width int
	// Color marks levels and warnings with ANSI colours.
	Color bool
}

// Write writes the document as text.
func (t Terminal) Write(w io.Writer, d *Document) error {
	b := textWriter{to: t}
	b.to.Width = cmp.Or(max(t.Width, 0), defaultWidth)
	b.document(d)
	return write(w, b.Bytes())
}

// WriteText writes the document as text of 80 columns without colour.
func (d *Document) WriteText(w io.Writer) error { return Terminal{}.Write(w, d) }

func write(w io.Writer, text []byte) error {
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	return nil
}

type textWriter struct {
	to        Terminal
	published bool // listings are those of another tool, line by line
	bytes.Buffer
}

func (b *textWriter) gap() {
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
}

func (b *textWriter) document(d *Document) {
	b.published = d.ListingFirst
	if d.Title != "" && !d.ListingFirst {
		b.gap()
		b.heading(d.Title, "=")
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
		b.note(n, "", "  ")
	}
	for _, v := range d.Outcomes() {
		b.gap()
		fmt.Fprintf(b, "%s: %s\n", v.Title, b.paint(v.Level, v.Level))
		for _, e := range v.Evidence {
			b.wrap(e.Text, "  "+b.paint(e.Level, fmt.Sprintf("%-8s", strings.ToLower(e.Level)))+" ", strings.Repeat(" ", 11))
		}
	}
	for _, part := range d.Parts {
		b.document(part)
	}
}

func (b *textWriter) heading(title, rule string) {
	b.wrap(title, "", "")
	b.line(strings.Repeat(rule, min(b.to.Width, mostProse)))
}

func (b *textWriter) section(s *Section) {
	if s.Title != "" {
		b.gap()
		b.heading(s.Title, "-")
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
			b.note(*block.Note, "  ", "  ")
		case block.KeyValues != nil:
			b.keyValues(block.KeyValues)
		case block.Table != nil:
			b.table(block.Table)
		case block.Listing != nil:
			for _, line := range block.Listing {
				if b.published || columnsOf(line) <= b.to.Width {
					b.WriteString(line + "\n")
				} else {
					b.wrap(line, "", "  ")
				}
			}
		}
	}
}

func (b *textWriter) note(n Note, first, others string) {
	if n.Kind != "" {
		first += b.paint(n.Kind, n.Kind) + ": "
	}
	b.wrap(n.Text, first, others)
}

// colors are the ANSI colours of levels and kinds of notes.
var colors = map[string]int{"VALID": 32, "PASS": 32, "SUSPECT": 33, "Warning": 33, "INVALID": 31, "FAIL": 31}

// paint colours a text by its level.
func (b *textWriter) paint(level, text string) string {
	if color := colors[level]; b.to.Color && color != 0 {
		return fmt.Sprintf("\x1b[%dm%s\x1b[m", color, text)
	}
	return text
}

// columnsOf returns the columns that a text takes, without those of colours.
func columnsOf(text string) int {
	n := 0
	for before, rest := "", text; rest != ""; {
		before, rest, _ = strings.Cut(rest, "\x1b[")
		n += utf8.RuneCountInString(before)
		_, rest, _ = strings.Cut(rest, "m")
	}
	return n
}

// wrap wraps a text between words, with these prefixes. A word that is too long for
// a prefix of spaces shortens it.
func (b *textWriter) wrap(text, first, others string) {
	width := min(b.to.Width, mostProse)
	line, begun := first, false
	for _, word := range strings.Fields(Clean(text)) {
		left := width - columnsOf(word)
		switch {
		case begun && columnsOf(line) < left:
			line += " "
		case begun || strings.TrimSpace(line) != "" && columnsOf(line) > left:
			b.line(line)
			line = others[:max(0, min(len(others), left))]
		case columnsOf(line) > left:
			line = line[:max(0, left)]
		}
		line, begun = line+word, true
	}
	b.line(line)
}

// keyValues writes rows in columns. A row that is too wide for them is written as a
// text.
func (b *textWriter) keyValues(rows []KeyValue) {
	key, value, unit := 32, 15, 1
	if slices.ContainsFunc(rows, func(r KeyValue) bool { return r.Unit != "" }) {
		unit = 7
	}
	if b.to.Width < 2+key+value+1+unit {
		key, value = 0, 0
		for _, r := range rows {
			key, value = max(key, columnsOf(Clean(r.Key))), max(value, 1+columnsOf(Clean(r.Value)))
		}
	}
	for _, r := range rows {
		line := fmt.Sprintf("  %-*s%*s %-*s", key, Clean(r.Key), value, Clean(r.Value), unit, r.Unit)
		note := Clean(r.Note)
		switch {
		case columnsOf(line+note) <= b.to.Width:
			b.line(line + note)
			continue
		case columnsOf(strings.TrimRight(line, " ")) <= b.to.Width:
			b.line(line)
		default:
			b.wrap(r.Key, "  ", "  ")
			b.wrap(r.Value+" "+r.Unit, "      ", "      ")
		}
		if note != "" {
			b.wrap(note, "      ", "      ")
		}
	}
}

func (b *textWriter) line(s string) { b.WriteString(strings.TrimRight(s, " ") + "\n") }

// leastWords is the width that wrapping leaves to a column of words, which keeps the
// lines of its cells readable.
const leastWords = 12

// table writes a table. One that is too wide has its headings and the words of its
// left columns wrapped. If that is not enough, it is written in parts of about as many
// columns that start with the left columns, or row by row.
func (b *textWriter) table(t *Table) {
	g := grid{rows: cleanRows(t), left: min(t.Left, len(t.Columns))}
	keys := max(1, g.left)
	if t.Words() {
		keys = 1
	}
	widths := g.leastWidths()
	ends, fits := g.split(widths, keys, len(t.Columns), b.to.Width)
	if !fits {
		b.stacked(g.rows, keys)
		return
	}
	for most := len(t.Columns) - 1; most > 0; most-- {
		even, _ := g.split(widths, keys, most, b.to.Width)
		if len(even) > len(ends) {
			break
		}
		ends = even
	}
	begin := keys
	for _, end := range ends {
		if begin > keys {
			b.gap()
		}
		var part []int
		for i := range end {
			if i < keys || i >= begin {
				part = append(part, i)
			}
		}
		b.part(g.columns(part))
		begin = end
	}
}

// split returns the ends of parts of at most so many columns, of given widths, besides the
// keys, and whether each column fits into a part. Columns without a heading stay with the
// one before.
func (g grid) split(all []int, keys, most, width int) (ends []int, fits bool) {
	room := width
	for _, w := range all[:keys] {
		room -= 2 + w
	}
	begin, left := keys, room
	for i := keys; i < len(all); {
		next, wide := i+1, 2+all[i]
		for ; next < len(all) && g.rows[0][next] == ""; next++ {
			wide += 2 + all[next]
		}
		if i > begin && (left < wide || next-begin > most) {
			ends, begin, left = append(ends, i), i, room
		}
		if left -= wide; left < 0 {
			return nil, false
		}
		i = next
	}
	return append(ends, len(all)), room >= 0
}

// grid is the cells of a table, with the headings first.
type grid struct {
	rows [][]string
	left int
}

// columns returns a grid of some columns.
func (g grid) columns(some []int) grid {
	rows := make([][]string, len(g.rows))
	left := 0
	for _, column := range some {
		if column < g.left {
			left++
		}
		for r, row := range g.rows {
			rows[r] = append(rows[r], row[column])
		}
	}
	return grid{rows, left}
}

// leastWidths returns the widths below which a word or a number would be cut.
func (g grid) leastWidths() []int {
	widths := make([]int, len(g.rows[0]))
	for r, row := range g.rows {
		for i, cell := range row {
			least := columnsOf(cell)
			if r == 0 || i < g.left {
				least = min(least, max(longestWord(cell), leastWords))
			}
			if r == 0 {
				least = min(least, longestWord(cell))
			}
			widths[i] = max(widths[i], least)
		}
	}
	return widths
}

func columnWidths(rows [][]string) (widths []int, total int) {
	widths = make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], columnsOf(cell))
		}
	}
	for _, width := range widths {
		total += 2 + width
	}
	return widths, total
}

func longestWord(text string) (most int) {
	for _, word := range strings.Fields(text) {
		most = max(most, columnsOf(word))
	}
	return most
}

// part writes columns that fit once the widest of them are narrowed.
func (b *textWriter) part(g grid) {
	least := g.leastWidths()
	widths, total := columnWidths(g.rows)
	for ; total > b.to.Width; total-- {
		widest := -1
		for i, width := range widths {
			if width > least[i] && (widest < 0 || width > widths[widest]) {
				widest = i
			}
		}
		widths[widest]--
	}
	for r, row := range g.rows {
		b.row(row, widths, g.left, r == 0)
	}
}

// row writes the cells of a row, wrapped; those of headings end on the same line.
func (b *textWriter) row(row []string, widths []int, left int, heading bool) {
	cells, height := make([][]string, len(row)), 0
	for i, cell := range row {
		cells[i] = wrapped(cell, widths[i])
		height = max(height, len(cells[i]))
	}
	for l := range height {
		var line strings.Builder
		for i, lines := range cells {
			width, at := widths[i], l
			if i < left {
				width = -width
			}
			if heading {
				at -= height - len(lines)
			}
			text := ""
			if at >= 0 && at < len(lines) {
				text = lines[at]
			}
			fmt.Fprintf(&line, "  %*s", width, text)
		}
		if strings.TrimSpace(line.String()) != "" { // not for columns without headings
			b.line(line.String())
		}
	}
}

// wrapped returns the lines of a cell.
func wrapped(cell string, width int) (lines []string) {
	if columnsOf(cell) <= width {
		return []string{cell}
	}
	for _, word := range strings.Fields(cell) {
		if last := len(lines) - 1; last >= 0 && columnsOf(lines[last]+word) < width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// stacked writes each row as the texts of its cells, below its keys.
func (b *textWriter) stacked(rows [][]string, keys int) {
	for _, row := range rows[1:] {
		var texts []string
		for i, cell := range row {
			text := strings.TrimSpace(cell)
			if heading := rows[0][i]; heading != "" && text != "" {
				text = heading + ": " + text
			}
			texts = append(texts, text)
		}
		if title := "  " + strings.Join(texts[:keys], "  "); columnsOf(title) <= b.to.Width {
			b.line(title)
			texts = texts[keys:]
		} else {
			b.wrap(texts[0], "  ", "    ")
			texts = texts[1:]
		}
		for _, text := range texts {
			if text != "" {
				b.wrap(text, "    ", "      ")
			}
		}
	}
}

func cleanRows(t *Table) [][]string {
	var rows [][]string
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = Clean(cell)
		}
		rows = append(rows, cells)
	}
	return rows
}
