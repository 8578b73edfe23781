// Package doc is the document model of reports: a report is built once, as data, and
// written as terminal text, Markdown, CSV, HTML or PNG.
//
//	d := doc.New("DATASET ANALYSIS", "Trace: conversation.jsonl")
//	s := d.Section("Overview")
//	s.Row("Total requests", doc.Int(12031), "", "")
//	s.Warn("Blocks of 512 tokens fit the ids of 11,000 of 12,031 rows.")
//	err := d.WriteText(os.Stdout)
//
// Every rendering contains every note, warning, verdict, gate and piece of evidence
// of the document. Text and Markdown omit figures; CSV has the numbers of
// [Document.Data] instead of sections. Text from files and servers needs no
// cleaning: each writer removes control characters and escapes markup.
//
// The functions [Int], [Fixed], [Count], [Percent] and [Duration] format the
// numbers of reports. A Document is not safe for concurrent changes; writing
// one does not change it.
package doc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"moontide/analyze/report/figure"
	"moontide/trace"
	"moontide/trace/stats"
)

// Absent replaces unknown values in text, Markdown and HTML.
const Absent = "-"

// Document is a report.
type Document struct {
	Title   string
	Subject string // subject of the report, in one line
	// ListingFirst omits title and subject in text, for a block with a Listing at the
	// top. Markdown and HTML omit listings: reports add a table of the same numbers in
	// a Detail section.
	ListingFirst bool
	Headlines    []KeyValue // the result in a few numbers: HTML only
	Sections     []*Section
	// Notes, Verdict and Gates come last in text and first in Markdown and HTML.
	Notes   []Note
	Verdict *Verdict
	Gates   *Verdict // PASS or FAIL, with every gate as evidence; nil without gates
	// Parts holds the reports of several runs, after the sections. A part without a
	// title gets no heading.
	Parts []*Document
	Data  Data
}

// Data holds the numbers of a document for programs: full precision, no units;
// unknown values are empty.
type Data struct {
	Columns []string
	Rows    [][]string
}

// Add appends a row. nil and unset values are unknown.
func (d *Data) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		switch v := cell.(type) {
		case nil:
		case string:
			row[i] = v
		case int:
			row[i] = strconv.Itoa(v)
		case float64:
			row[i] = stats.Plain(v)
		case trace.Opt[float64]:
			if v.Set {
				row[i] = stats.Plain(v.Value)
			}
		case trace.Opt[int]:
			if v.Set {
				row[i] = strconv.Itoa(v.Value)
			}
		default:
			row[i] = fmt.Sprint(v)
		}
	}
	d.Rows = append(d.Rows, row)
}

// Note is a remark that every rendering contains.
type Note struct {
	Kind string // such as "Note" or "Warning"; "" for none
	Text string
}

// String returns the note as one line.
func (n Note) String() string {
	if n.Kind == "" {
		return Clean(n.Text)
	}
	return n.Kind + ": " + Clean(n.Text)
}

// Verdict is a level with the evidence for it.
type Verdict struct {
	Level    string // VALID, SUSPECT or INVALID; PASS or FAIL
	Evidence []Evidence
}

// Evidence is one checked fact.
type Evidence struct {
	Check string `json:"check"` // stable name, in JSON only
	Level string `json:"level"`
	Text  string `json:"text"`
}

// Section is a heading and its content.
type Section struct {
	Title string
	// Detail sections are omitted in text.
	Detail bool
	// Lead sections come before the outcomes on pages.
	Lead bool
	// PageOnly sections have figures that pictures omit.
	PageOnly bool
	Blocks   []Block
}

// Block is one piece of content; exactly one of its fields is set.
type Block struct {
	Paragraph string
	Note      *Note
	KeyValues []KeyValue
	Table     *Table
	Listing   []string        // lines in a layout of their own; text only: see ListingFirst
	Figures   []figure.Figure // HTML and PNG only
}

// KeyValue is a named value, its unit, and a remark of a few words.
type KeyValue struct{ Key, Value, Unit, Note string }

// Table has cells of text. The first Left columns are aligned left.
type Table struct {
	Columns []string
	Left    int
	Rows    [][]string
}

// AllLeft is a [Table.Left] for tables of words.
const AllLeft = 1 << 10

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// New starts a document.
func New(title, subject string) *Document { return &Document{Title: title, Subject: subject} }

// Section starts a section.
func (d *Document) Section(title string) *Section {
	s := &Section{Title: title}
	d.Sections = append(d.Sections, s)
	return s
}

// DetailSection starts a section that text omits.
func (d *Document) DetailSection(title string) *Section {
	s := d.Section(title)
	s.Detail = true
	return s
}

// Note adds a note to the document as a whole.
func (d *Document) Note(kind, text string) { d.Notes = append(d.Notes, Note{kind, text}) }

// Text adds a paragraph of the given sentences.
func (s *Section) Text(sentences ...string) {
	s.Blocks = append(s.Blocks, Block{Paragraph: strings.Join(sentences, " ")})
}

// Note adds a note at this position.
func (s *Section) Note(kind, text string) {
	s.Blocks = append(s.Blocks, Block{Note: &Note{kind, text}})
}

// Warn adds a warning at this position.
func (s *Section) Warn(text string) { s.Note("Warning", text) }

// Row adds a named value; consecutive rows are aligned.
func (s *Section) Row(key, value, unit, note string) {
	if value == "1" {
		unit = strings.TrimSuffix(unit, "s")
	}
	b := s.last(func(b *Block) bool { return b.KeyValues != nil })
	b.KeyValues = append(b.KeyValues, KeyValue{key, value, unit, note})
}

// Figures adds figures. Consecutive figures are side by side.
func (s *Section) Figures(all ...figure.Figure) {
	if len(all) > 0 {
		b := s.last(func(b *Block) bool { return b.Figures != nil })
		b.Figures = append(b.Figures, all...)
	}
}

// DropFigures removes the figures of all sections.
func (d *Document) DropFigures() {
	for _, s := range d.Sections {
		s.Blocks = slices.DeleteFunc(s.Blocks, func(b Block) bool { return b.Figures != nil })
	}
}

// Table adds a table, unless it has no rows.
func (s *Section) Table(t Table) {
	if len(t.Rows) > 0 {
		s.Blocks = append(s.Blocks, Block{Table: &t})
	}
}

func (s *Section) last(of func(*Block) bool) *Block {
	if n := len(s.Blocks); n == 0 || !of(&s.Blocks[n-1]) {
		s.Blocks = append(s.Blocks, Block{})
	}
	return &s.Blocks[len(s.Blocks)-1]
}

// hasText reports whether there is content for text and Markdown.
func (s *Section) hasText() bool {
	for _, b := range s.Blocks {
		if b.Figures == nil {
			return true
		}
	}
	return false
}

// Outcome is a verdict or the gates, with its title.
type Outcome struct {
	Title string
	*Verdict
}

// Outcomes returns the verdict and the gates, if any.
func (d *Document) Outcomes() (all []Outcome) {
	if d.Verdict != nil {
		all = append(all, Outcome{"Verdict", d.Verdict})
	}
	if d.Gates != nil {
		all = append(all, Outcome{"Gates", d.Gates})
	}
	return all
}

// allNotes returns the notes and the outcomes as strings, in page order.
func (d *Document) allNotes() (all []string) {
	for _, v := range d.Outcomes() {
		all = append(all, v.Title+": "+v.Level)
		for _, e := range v.Evidence {
			all = append(all, Clean(e.Level+": "+e.Text))
		}
	}
	for _, n := range d.Notes {
		all = append(all, n.String())
	}
	for _, s := range d.Sections {
		for _, n := range s.notes() {
			all = append(all, n.String())
		}
	}
	return all
}

func (s *Section) notes() (all []Note) {
	for _, b := range s.Blocks {
		if b.Note != nil {
			all = append(all, *b.Note)
		}
	}
	return all
}

// Clean makes untrusted text safe for one line, without control characters.
func Clean(s string) string {
	plain := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	return strings.Join(strings.Fields(plain), " ")
}

// Plural returns the noun for n things.
func Plural(n int, thing string) string {
	if n == 1 {
		return thing
	}
	return thing + "s"
}

// Count formats a number of things with their noun: "1,200 requests".
func Count(n int, thing string) string { return Int(n) + " " + Plural(n, thing) }

// Int formats an integer with thousands separators.
func Int(n int) string { return separated(strconv.Itoa(n)) }

// Fixed formats a number with thousands separators.
func Fixed(v float64, decimals int) string {
	return separated(strconv.FormatFloat(v, 'f', decimals, 64))
}

// Duration formats milliseconds in a suitable unit: "1.26 s", "45.6 ms".
func Duration(ms float64) string {
	return figure.Axis{Quantity: figure.Duration}.Text(ms / 1000)
}

// FixedOr is Fixed, or [Absent] if the number is unknown.
func FixedOr(v trace.Opt[float64], decimals int) string {
	if !v.Set {
		return Absent
	}
	return Fixed(v.Value, decimals)
}

// Percent formats a share of 1 in percent, without the sign.
func Percent(share float64) string { return Fixed(100*share, 2) }

// PercentOr is Percent, or [Absent] if the share is unknown.
func PercentOr(share trace.Opt[float64]) string {
	share.Value *= 100
	return FixedOr(share, 2)
}

// Share formats part of whole in percent, with the sign.
func Share(part, whole int) string { return Percent(float64(part)/float64(whole)) + " %" }

func separated(number string) string {
	digits, negative := strings.CutPrefix(number, "-")
	whole, fraction, hasFraction := strings.Cut(digits, ".")
	if strings.Trim(whole, "0123456789") != "" {
		return number // an infinity
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if hasFraction {
		whole += "." + fraction
	}
	if negative {
		return "-" + whole
	}
	return whole
}
