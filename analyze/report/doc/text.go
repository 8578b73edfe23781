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
