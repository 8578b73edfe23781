package doc

import (
	"fmt"
	"slices"
	"strings"
)

// leastWords is the width that wrapping leaves to a column of words, which keeps the
// lines of its cells readable.
const leastWords = 12

// table writes a table. One that is too wide has its headings and the words of its
// left columns wrapped. If that is not enough, it is written in parts that start with
// the left columns, or row by row.
func (b *textWriter) table(t *Table) {
	g := grid{rows: cleanRows(t), left: min(t.Left, len(t.Columns))}
	all := g.leastWidths()
	keys := max(1, g.left)
	if t.Words() {
		keys = 1
	}
	for begin := keys; ; {
		var part []int
		total := 0
		for key, width := range all[:keys] {
			part, total = append(part, key), total+2+width
		}
		end := begin
		for ; end < len(all) && total+2+all[end] <= b.to.Width; end++ {
			part, total = append(part, end), total+2+all[end]
		}
		if total > b.to.Width || end == begin && end < len(all) {
			b.stacked(g.rows, keys, begin)
			return
		}
		if begin > keys {
			b.gap()
		}
		b.part(g.columns(part))
		if begin = end; begin >= len(all) {
			return
		}
	}
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

// stacked writes the keys of each row and the columns from one on as texts, below the
// first key.
func (b *textWriter) stacked(rows [][]string, keys, from int) {
	for _, row := range rows[1:] {
		b.wrap(row[0], "  ", "    ")
		for i, cell := range row {
			if i == 0 || i >= keys && i < from {
				continue
			}
			if text := slices.DeleteFunc([]string{rows[0][i], strings.TrimSpace(cell)}, func(s string) bool { return s == "" }); len(text) > 0 {
				b.wrap(strings.Join(text, ": "), "    ", "      ")
			}
		}
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
