package report

import (
	"io"
	"slices"
	"strings"

	"moontide/analyze/report/doc"
)

// Comparison compares traces side by side. The first is the baseline.
type Comparison []Dataset

// Document contains the values of all traces side by side, the tables of each cache, and
// common figures.
func (c Comparison) Document() *doc.Document {
	d := doc.New("TRACE COMPARISON", "Measured against: "+c[0].Name)
	c.sideBySide(d)
	for _, data := range c {
		var of doc.Document
		data.Cache.addTo(&of)
		for _, s := range of.Sections {
			s.Title += " of " + data.Name
			d.Sections = append(d.Sections, s)
		}
	}
	s := d.Section("Figures")
	s.Lead = true
	for _, f := range c.figures() {
		s.Figure(f)
	}
	return d
}

// sideBySide shows the values of the traces' documents, section by section.
func (c Comparison) sideBySide(d *doc.Document) {
	var titles []string
	sections := map[string][]*doc.Section{} // by title, of each trace
	for i, data := range c {
		for _, s := range data.Document().Sections {
			if sections[s.Title] == nil {
				titles, sections[s.Title] = append(titles, s.Title), make([]*doc.Section, len(c))
			}
			sections[s.Title][i] = s
		}
	}
	for _, title := range titles {
		t := doc.Table{Columns: []string{""}, Left: 1}
		var notes []doc.Note
		rows := map[string]int{}
		for i, s := range sections[title] {
			if t.Columns = append(t.Columns, c[i].Name); s == nil {
				continue
			}
			for _, b := range s.Blocks {
				for _, kv := range b.KeyValues {
					key := strings.TrimSuffix(kv.Key+", "+strings.TrimSuffix(kv.Unit, "s"), ", ")
					if _, known := rows[key]; !known {
						rows[key] = len(t.Rows)
						t.Add(slices.Insert(slices.Repeat([]string{doc.Absent}, len(c)), 0, strings.TrimSuffix(kv.Key+", "+kv.Unit, ", "))...)
					}
					t.Rows[rows[key]][1+i] = kv.Value
				}
				if n := b.Note; n != nil {
					notes = append(notes, doc.Note{Kind: n.Kind, Text: c[i].Name + ": " + n.Text})
				}
			}
		}
		if len(t.Rows)+len(notes) == 0 {
			continue
		}
		s := d.Section(title)
		s.Table(t)
		for _, n := range notes {
			s.Note(n.Kind, n.Text)
		}
	}
}

// JSON writes the traces as [Dataset.JSON] does.
func (c Comparison) JSON(w io.Writer) error {
	return writeJSON(w, object{{"traces", objects(c, datasetJSON)}})
}
