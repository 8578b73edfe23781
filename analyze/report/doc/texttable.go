package doc

import (
	"fmt"
	"strings"
)

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
