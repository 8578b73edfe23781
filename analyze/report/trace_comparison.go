package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"moontide/analyze"
	"moontide/analyze/report/doc"
	"moontide/trace"
	"moontide/trace/stats"
)

// Traces compares traces side by side. The first is the baseline.
type Traces []Trace

// Document contains the values of all traces side by side, the tables of each cache, and
// common figures.
func (c Traces) Document() *doc.Document {
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
	s.Figures(c.figures()...)
	return d
}

// sideBySide shows the values of the traces' documents, section by section.
func (c Traces) sideBySide(d *doc.Document) {
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

// JSON writes the traces as [Trace.JSON] does.
func (c Traces) JSON(w io.Writer) error {
	return writeJSON(w, object{{"traces", objects(c, traceJSON)}})
}

// Datagen contains, for each trace, the block of statistics that Dynamo's data generator
// publishes, and the notes. Its contexts are those declared in the trace, otherwise the
// observed ones.
func (c Traces) Datagen() *doc.Document {
	all := &doc.Document{ListingFirst: true}
	for _, d := range c {
		part := &doc.Document{ListingFirst: true}
		part.Section("").Blocks = []doc.Block{{Listing: d.datagenBlock()}}
		overviewSection(part.DetailSection(""), d.Analysis) // text has only its notes
		if _, declared := datagenContext(d.Analysis); declared {
			part.Note("Context", "as the trace's generator declares it.")
		} else if d.HasBlocks() {
			part.Note("Context", "the leading blocks of a prompt that occur more than once in the trace.")
		}
		all.Parts = append(all.Parts, part)
	}
	return all
}

func datagenContext(a *analyze.Analysis) (c analyze.Context, declared bool) {
	if a.Declared.Mean.Set {
		return a.Declared, true
	}
	return a.Observed, false
}

// datagenBlock returns the lines of the block.
func (d Trace) datagenBlock() []string {
	a := d.Analysis
	var lines []string
	group := func(title string, width int, rows ...[2]string) {
		lines = append(lines, title, strings.Repeat("-", 40))
		for _, row := range rows {
			lines = append(lines, fmt.Sprintf("  %-*s %s", width, row[0]+":", row[1]))
		}
	}
	rule := strings.Repeat("=", 60)
	lines = append(lines, rule, "DATASET ANALYSIS: "+doc.Clean(d.Name), rule)
	unique, total, block, token := datagenReuse(a)
	group("OVERVIEW", 20, [2]string{"Total Requests", doc.Int(a.Requests)}, [2]string{"Unique Hash Blocks", unique}, [2]string{"Total Hash Blocks", total})
	for _, l := range []struct {
		title string
		of    stats.Sample
	}{{"INPUT SEQUENCE LENGTH (ISL)", a.ISL}, {"OUTPUT SEQUENCE LENGTH (OSL)", a.OSL}} {
		tokens := func(n float64) string { return doc.Fixed(n, 0) + " tokens" }
		group(l.title, 20, [2]string{"Average", tokens(l.of.Mean)}, [2]string{"Maximum", tokens(l.of.Max)}, [2]string{"Minimum", tokens(l.of.Min)})
	}
	context, _ := datagenContext(a)
	group("KV CACHE / PREFIX REUSE", 21,
		[2]string{"Block-level Hit Rate", percentText(block, 1, "%")}, [2]string{"Token-level Hit Rate", percentText(token, 1, "%")},
		[2]string{"Avg Context (shared)", doc.FixedOr(context.Mean, 0) + " tokens/req"}, [2]string{"Avg Unique Prompt", doc.FixedOr(context.UniqueMean, 0) + " tokens/req"},
		[2]string{"Shared Prefix Ratio", percentText(context.SharedRatio, 1, "%")})
	return append(append(lines, rule, "", "Summary:"), datagenSummary(a, block, token, context.SharedRatio)...)
}

// datagenReuse returns the numbers of blocks and the hit rates of an infinite cache.
func datagenReuse(a *analyze.Analysis) (unique, total string, block, token trace.Opt[float64]) {
	b := a.Prefix
	if b == nil {
		return doc.Absent, doc.Absent, block, token
	}
	return doc.Int(b.UniqueBlocks), doc.Int(b.TotalBlocks), trace.Some(b.Infinite.Block), b.Infinite.Token
}

// datagenSummary returns the block's summary in words.
func datagenSummary(a *analyze.Analysis, block, token, shared trace.Opt[float64]) (lines []string) {
	const longContext = 10_000 // tokens of a mean prompt
	if block.Set && token.Set {
		rates := "~" + percentText(token, 0, "%")
		if of := percentText(block, 0, "%"); of != percentText(token, 0, "%") {
			rates = "~" + of + "/" + percentText(token, 0, "%")
		}
		lines = append(lines, "• "+rates+" KV cache hit rate (block/token level) based on hash_id overlap across requests")
	}
	if shared.Set {
		lines = append(lines, "• ~"+percentText(shared, 0, "%")+" of input tokens come from shared context prefixes")
	}
	kind := "Workload"
	if a.ISL.Mean >= longContext {
		kind = "Long-context workload"
	}
	return append(lines, fmt.Sprintf("• %s: avg %s input tokens, up to %s max", kind, thousands(a.ISL.Mean), thousands(a.ISL.Max)))
}

// thousands formats a number of tokens with K for thousands.
func thousands(n float64) string {
	switch {
	case n < 1000:
		return doc.Fixed(n, 0)
	case n < 10_000:
		return doc.Fixed(n/1000, 1) + "K"
	}
	return doc.Fixed(n/1000, 0) + "K"
}
