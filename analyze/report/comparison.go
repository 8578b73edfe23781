package report

import (
	"io"
	"slices"
	"strings"

	"moontide/analyze"
	"moontide/analyze/report/doc"
	"moontide/trace"
)

// Comparison compares traces side by side. The first is the baseline.
type Comparison []Dataset

// Document contains all results side by side, and the distance of each trace from
// the first.
func (c Comparison) Document() *doc.Document {
	d := doc.New("TRACE COMPARISON", "Measured against: "+c[0].Name)
	c.sideBySide(d)
	c.caches(d)
	c.distances(d)
	s := d.Section("Figures")
	s.Lead = true
	for _, f := range c.figures() {
		s.Figure(f)
	}
	return d
}

// sideBySide shows the named values of the traces' own documents, section by section.
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
		t := c.table()
		var notes []doc.Note
		rows := map[string]int{}
		for i, s := range sections[title] {
			if s == nil {
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
		kept, left := comparable(t.Rows)
		t.Rows = kept
		if len(kept)+len(notes) == 0 {
			continue
		}
		s := d.Section(title)
		s.Table(t)
		leftOut(s, left)
		for _, n := range notes {
			s.Note(n.Kind, n.Text)
		}
	}
}

// comparable splits rows into those of which at least two columns have a value and
// the names of the others.
func comparable(rows [][]string) (kept [][]string, left []string) {
	for _, row := range rows {
		known := 0
		for _, value := range row[1:] {
			if value != doc.Absent {
				known++
			}
		}
		if known >= 2 {
			kept = append(kept, row)
		} else {
			left = append(left, row[0])
		}
	}
	return kept, left
}

func leftOut(s *doc.Section, names []string) {
	if len(names) > 0 {
		s.Text("Omitted, because fewer than two traces have a value: " + strings.Join(names, "; ") + ".")
	}
}

func (c Comparison) distances(d *doc.Document) {
	for _, other := range c[1:] {
		x := analyze.Compare(c[0].Analysis, other.Analysis)
		s := d.Section("Distance of " + other.Name)
		var left []string
		t := doc.Table{Columns: []string{"", "KS, 0..1", "Wasserstein", "unit"}, Left: 1}
		line := func(label, unit string, distance trace.Opt[analyze.Distance]) {
			if !distance.Set {
				left = append(left, label)
				return
			}
			t.Add(label, doc.Fixed(distance.Value.KS, 4), doc.Fixed(distance.Value.Wasserstein, 2), unit)
		}
		line("ISL", "tokens", x.ISL)
		line("OSL", "tokens", x.OSL)
		line("observed context", "tokens", x.Context)
		line("inter-arrival", "ms", x.Gap)
		line("turns per session", "turns", x.Turns)
		line("turn to next turn", "ms", x.TurnGap)
		if x.Delay.Set { // few traces have any
			line("given delay", "ms", x.Delay)
		}
		s.Table(t)
		leftOut(s, left)
	}
}

// JSON writes the traces as [Dataset.JSON] does, and their distances from the first.
func (c Comparison) JSON(w io.Writer) error {
	distances := objects(c[1:], func(d Dataset) object { return distancesJSON(d.Name, analyze.Compare(c[0].Analysis, d.Analysis)) })
	return writeJSON(w, object{{"traces", objects(c, datasetJSON)}, {"distances", distances}})
}

func distancesJSON(name string, x analyze.Comparison) object {
	of := func(d trace.Opt[analyze.Distance]) any {
		return orNull(object{{"ks", d.Value.KS}, {"wasserstein", d.Value.Wasserstein}}, d.Set)
	}
	o := object{
		{"trace", name}, {"isl", of(x.ISL)}, {"osl", of(x.OSL)}, {"context", of(x.Context)}, {"inter_arrival", of(x.Gap)},
		{"turns", of(x.Turns)}, {"turn_gap", of(x.TurnGap)},
	}
	if x.Delay.Set {
		o = append(o, field{"delay", of(x.Delay)})
	}
	return o
}
