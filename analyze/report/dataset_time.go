package report

import (
	"strings"

	"moontide/analyze"
	"moontide/analyze/report/doc"
	"moontide/trace"
)

// mostTimeRows limits the table of windows in a report; JSON has all of them.
const mostTimeRows = 16

// timeSection shows the windows, and the change from their first third to the last.
func timeSection(to *doc.Document, a *analyze.Analysis) {
	t := a.Time
	if t == nil {
		return
	}
	windows, width := t.Merged(mostTimeRows)
	s := to.Section("Over time, in windows of " + doc.Duration(width))
	text := "Means of ISL and OSL in tokens, and their coefficients of variation (CV) across requests."
	columns := []string{"from", "requests", "req/s", "ISL", "CV", "OSL", "CV"}
	if a.Prefix != nil {
		text += " Hits are those of an infinite cache that starts empty; context is shared with any other request."
		columns = append(columns, "hits", "context")
	}
	s.Text(text, changeSentence(t))
	table := doc.Table{Columns: columns, Left: 1}
	for _, w := range windows {
		row := []string{
			doc.Duration(w.From), doc.Int(w.Requests), rates(w.Rate()),
			tokens(w.MeanISL()), doc.FixedOr(w.ISL.CV(), 2), tokens(w.MeanOSL()), doc.FixedOr(w.OSL.CV(), 2),
		}
		if a.Prefix != nil {
			row = append(row, percentUnit(w.HitRate()), percentUnit(w.ContextShare()))
		}
		table.Add(row...)
	}
	s.Table(table)
}

// varied lists the quantities over time.
var varied = []struct {
	key, name string
	of        func(analyze.Window) trace.Opt[float64]
}{
	{"rate", "rate", analyze.Window.Rate}, {"isl", "ISL", analyze.Window.MeanISL}, {"osl", "OSL", analyze.Window.MeanOSL},
	{"context", "context", analyze.Window.ContextShare},
}

func percentUnit(share trace.Opt[float64]) string {
	if !share.Set {
		return doc.Absent
	}
	return doc.Fixed(100*share.Value, 1) + " %"
}

// tokens shows a mean length.
func tokens(mean trace.Opt[float64]) string {
	if mean.Value < 100 {
		return doc.FixedOr(mean, 1)
	}
	return doc.FixedOr(mean, 0)
}

func rates(perSecond trace.Opt[float64]) string { return doc.FixedOr(perSecond, 3) }

// lastOverFirst returns the ratio of a quantity in the last third of the windows to that in
// the first.
func lastOverFirst(t *analyze.Time, of func(analyze.Window) trace.Opt[float64]) trace.Opt[float64] {
	first, last := of(t.First), of(t.Last)
	return trace.Opt[float64]{Value: last.Value / first.Value, Set: first.Set && last.Set && first.Value > 0}
}

// changeSentence compares rate and lengths of the last third of a trace with those of the
// first; "" if neither is known.
func changeSentence(t *analyze.Time) string {
	var parts []string
	for _, v := range varied[:3] {
		if ratio := lastOverFirst(t, v.of); ratio.Set {
			parts = append(parts, doc.Fixed(ratio.Value, 2)+" times the "+v.name)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	last := len(parts) - 1
	if last > 0 {
		parts[last] = "and " + parts[last]
	}
	return "The last third has " + strings.Join(parts, ", ") + " of the first."
}

func timeJSON(t *analyze.Time) any {
	if t == nil {
		return nil
	}
	out := object{
		{"step_ms", t.Step}, // width of a window
		{"windows", objects(t.Windows, func(w analyze.Window) object {
			return object{
				{"from_ms", w.From}, {"to_ms", w.To}, {"requests", w.Requests}, {"rate", w.Rate()},
				{"isl_mean", w.MeanISL()}, {"isl_cv", w.ISL.CV()}, {"osl_mean", w.MeanOSL()}, {"osl_cv", w.OSL.CV()},
				{"token_hit_rate", w.HitRate()}, {"context_share", w.ContextShare()}, // null without block ids
			}
		})},
		{"summary", changeSentence(t)},
	}
	for _, v := range varied { // null with fewer than three windows
		out = append(out, field{v.key, object{{"first_third", v.of(t.First)}, {"last_third", v.of(t.Last)}, {"last_over_first", lastOverFirst(t, v.of)}}})
	}
	return out
}
