package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Text writes the tables of the sweep for a terminal: one a deployment, several
// of them also side by side. The errors are those of w.
func (s Sweep) Text(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n", oneLine(s.Subject))
	s.eachTable(func(title string, t table) {
		b.WriteByte('\n')
		if title != "" {
			fmt.Fprintf(&b, "%s\n", title)
		}
		wrappedTable(&b, t)
	})
	fmt.Fprintf(&b, "\n%s\n", s.verdict())
	for _, remark := range s.remarks() {
		fmt.Fprintf(&b, "%s\n", remark)
	}
	return write(w, b.Bytes())
}

// Markdown writes the tables of the sweep as GitHub reads them. The errors are
// those of w.
func (s Sweep) Markdown(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n", markdownText(s.Subject))
	s.eachTable(func(title string, t table) {
		b.WriteByte('\n')
		if title != "" {
			fmt.Fprintf(&b, "**%s**\n\n", markdownText(title))
		}
		markdownRow(&b, t.columns...)
		b.WriteString(strings.Repeat("| ---: ", len(t.columns)) + "|\n")
		for _, row := range t.rows {
			markdownRow(&b, row...)
		}
	})
	fmt.Fprintf(&b, "\n%s\n", markdownText(s.verdict()))
	for _, remark := range s.remarks() {
		fmt.Fprintf(&b, "\n%s\n", markdownText(remark))
	}
	return write(w, b.Bytes())
}

// eachTable shows every table of the sweep to f, with its title if it needs
// one.
func (s Sweep) eachTable(f func(title string, t table)) {
	for _, d := range s.Deployments {
		f(oneLine(d.Label), s.table(d))
	}
	if len(s.Deployments) > 1 {
		f("Side by side, with the ratio to "+oneLine(s.Deployments[0].Label), s.sideBySide())
	}
}

// wrappedTable writes a table of numbers whose headings, each much longer than
// what stands under it, go over several lines.
func wrappedTable(b *bytes.Buffer, t table) {
	const headingWidth = 12
	headings := make([][]string, len(t.columns))
	lines, widths := 0, make([]int, len(t.columns))
	for i, column := range t.columns {
		headings[i] = wrapped(column, headingWidth)
		lines = max(lines, len(headings[i]))
		for _, part := range headings[i] {
			widths[i] = max(widths[i], utf8.RuneCountInString(part))
		}
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	line := func(cell func(column int) string) {
		var text strings.Builder
		for i, width := range widths {
			fmt.Fprintf(&text, "  %*s", width, cell(i))
		}
		b.WriteString(strings.TrimRight(text.String()[2:], " ") + "\n")
	}
	for n := range lines {
		line(func(column int) string {
			h := headings[column]
			if skip := lines - len(h); n >= skip {
				return h[n-skip]
			}
			return ""
		})
	}
	line(func(column int) string { return strings.Repeat("-", widths[column]) })
	for _, row := range t.rows {
		line(func(column int) string { return row[column] })
	}
}

// wrapped breaks a text between words into lines of at most a width, or of one
// word.
func wrapped(text string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		if last >= 0 && utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}
