package report

import (
	"fmt"
	"math"
	"strings"

	"moontide/analyze"
	"moontide/analyze/report/doc"
	"moontide/trace"
)

// mostTimeRows limits the table of windows in a report; JSON has all of them.
const mostTimeRows = 16

// timeSection shows what changes from window to window.
func timeSection(to *doc.Document, a *analyze.Analysis) {
	t := a.Time
	if t == nil {
		return
	}
	windows, width := t.Merged(mostTimeRows)
	s := to.Section("Over time, in windows of " + doc.Duration(width))
	s.Text(overTimeText(a))
	clock := clockOf(width)
	table := doc.Table{Columns: []string{"from", "requests", "req/s", "ISL", "CV", "OSL", "CV"}, Left: 1}
	if a.Prefix != nil {
		table.Columns = append(table.Columns, "hits", "context")
	}
	for _, w := range windows {
		row := []string{
			clock(w.From), doc.Int(w.Requests), rates(w.Rate()),
			tokens(w.ISL.Mean()), doc.FixedOr(w.ISL.CV(), 2), tokens(w.OSL.Mean()), doc.FixedOr(w.OSL.CV(), 2),
		}
		if a.Prefix != nil {
			row = append(row, percentUnit(w.HitRate()), percentUnit(w.ContextShare()))
		}
		table.Add(row...)
	}
	s.Table(table)
	variationTable(s, t)
	regimeTable(s, t)
}

func overTimeText(a *analyze.Analysis) string {
	text := "Means of ISL and OSL in tokens, and their coefficients of variation (CV) across requests."
	if a.Prefix != nil {
		text += " Hits are those of an infinite cache that starts empty; context is shared with any other request."
	}
	return text
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

// varying lists the quantities of which the trace has values.
func varying(t *analyze.Time) []varied {
	all := []varied{
		{"rate", "req/s", rates, t.Rate}, {"ISL", "tokens", tokens, t.ISL}, {"OSL", "tokens", tokens, t.OSL},
	}
	if t.Context.CV.Set {
		all = append(all, varied{"context", "of prompt tokens", percentUnit, t.Context})
	}
	return all
}

type varied struct {
	name, unit string
	text       func(trace.Opt[float64]) string
	analyze.Variation
}

func rates(perSecond trace.Opt[float64]) string { return doc.FixedOr(perSecond, 3) }

func variationTable(s *doc.Section, t *analyze.Time) {
	s.Text(fmt.Sprintf("Between windows of %s: CV of the means, CV expected by chance (independent requests), autocorrelation of adjacent windows (lag 1),"+
		" and trend (p-value of the Mann-Kendall test).", doc.Duration(t.Step)))
	table := doc.Table{Columns: []string{"", "CV", "by chance", "lag 1", "first third", "last third", "ratio", "p"}, Left: 1}
	for _, v := range varying(t) {
		lag, trend := doc.Absent, doc.Absent
		if len(v.Autocorrelation) > 0 {
			lag = doc.Fixed(v.Autocorrelation[0], 2)
		}
		if v.Trend.P < 1 {
			trend = probability(v.Trend.P)
		}
		table.Add(v.name, doc.FixedOr(v.CV, 3), doc.FixedOr(v.ByChance, 3), lag,
			v.text(v.First), v.text(v.Last), doc.FixedOr(v.Ratio(), 2), trend)
	}
	s.Table(table)
}

func probability(p float64) string {
	if p < 0.001 {
		return "< 0.001"
	}
	return doc.Fixed(p, 3)
}

// muchVaried is how many times as large as by chance the CV of a rate is that is named.
const muchVaried = 2

// changeSentences names drifts and regimes.
func changeSentences(t *analyze.Time) (text []string) {
	for _, v := range varying(t) {
		if !v.Drifts {
			continue
		}
		verb := "grows"
		if v.Ratio().Value < 1 {
			verb = "falls"
		}
		name := strings.ToUpper(v.name[:1]) + v.name[1:]
		text = append(text, fmt.Sprintf("%s %s: the last third has %s %s, %s times the first third.",
			name, verb, v.text(v.Last), v.unit, doc.Fixed(v.Ratio().Value, 2)))
	}
	switch n := len(t.Regimes); {
	case n == 0:
		text = append(text, "There are too few windows to distinguish drift and regimes from chance.")
	case n == 1 && len(text) == 0 && t.Rate.CV.Value > muchVaried*t.Rate.ByChance.Value && t.Rate.ByChance.Set:
		text = append(text, fmt.Sprintf("Rate and lengths show no drift and no regimes, but the rate varies more than by chance: its CV between windows of %s is %s, compared with %s for Poisson arrivals.",
			doc.Duration(t.Step), doc.FixedOr(t.Rate.CV, 2), doc.FixedOr(t.Rate.ByChance, 2)))
	case n == 1 && len(text) == 0:
		text = append(text, "Rate and lengths show no drift and no regimes beyond chance.")
	case n > 1:
		text = append(text, fmt.Sprintf("Regimes: %d: %s.", n, regimeList(t)))
	}
	return text
}

// regimeList describes regimes in words, at most mostRegimes of them.
func regimeList(t *analyze.Time) string {
	const mostRegimes = 5
	clock := clockOf(t.Step)
	var all []string
	for i, r := range t.Regimes {
		if i == mostRegimes {
			all = append(all, fmt.Sprintf("and %d more", len(t.Regimes)-i))
			break
		}
		all = append(all, fmt.Sprintf("%s-%s at %s req/s (ISL %s, OSL %s)", clock(r.From), clock(r.To),
			doc.FixedOr(r.Rate(), 2), doc.FixedOr(r.ISL.Mean(), 0), doc.FixedOr(r.OSL.Mean(), 0)))
	}
	return strings.Join(all, ", ")
}

func regimeTable(s *doc.Section, t *analyze.Time) {
	if len(t.Regimes) < 2 {
		return
	}
	clock := clockOf(t.Step)
	table := doc.Table{Columns: []string{"regime", "requests", "req/s", "ISL", "OSL"}, Left: 1}
	for _, r := range t.Regimes[:min(len(t.Regimes), mostTimeRows)] {
		table.Add(clock(r.From)+" - "+clock(r.To), doc.Int(r.Requests), rates(r.Rate()), tokens(r.ISL.Mean()), tokens(r.OSL.Mean()))
	}
	s.Table(table)
}

func dispersionRows(s *doc.Section, a *analyze.Analysis) {
	const note = "1: Poisson, >1: bursts"
	if a.Time == nil {
		at := a.Arrivals
		s.Row("Index of dispersion, 1 s", doc.FixedOr(at.Dispersion1s, 2), "", noteOr(at.Dispersion1s, note, "needs two such windows"))
		s.Row("Index of dispersion, 60 s", doc.FixedOr(at.Dispersion60s, 2), "", noteOr(at.Dispersion60s, "", "needs two such windows"))
		return
	}
	for i, d := range a.Time.Dispersions {
		s.Row("Index of dispersion, "+doc.Duration(d.Width), doc.Fixed(d.Index, 2), "", noteIf(i == 0, note, ""))
	}
}

// clockOf returns a function that shows a time of the trace in milliseconds, to the
// precision of windows of a width: 00:21, 00:21:30, 1d 06:00 or 12.5 s.
func clockOf(width float64) func(ms float64) string {
	if math.Mod(width, 1000) != 0 {
		return func(ms float64) string { return doc.Fixed(ms/1000, 1) + " s" }
	}
	toMinutes := math.Mod(width, 60_000) == 0
	return func(ms float64) (text string) {
		at := int(math.Round(ms / 1000))
		if toMinutes {
			at = 60 * int(math.Round(ms/60_000))
		}
		if days := at / 86_400; math.Mod(width, 86_400_000) == 0 {
			return fmt.Sprintf("%dd", days)
		} else if days > 0 {
			text = fmt.Sprintf("%dd ", days)
		}
		text += fmt.Sprintf("%02d:%02d", at/3600%24, at/60%60)
		if !toMinutes {
			text += fmt.Sprintf(":%02d", at%60)
		}
		return text
	}
}

func timeJSON(t *analyze.Time) any {
	if t == nil {
		return nil
	}
	variation := func(v analyze.Variation) object {
		return object{
			{"cv", v.CV}, {"autocorrelation", v.Autocorrelation},
			{"first_third", v.First}, {"last_third", v.Last}, {"last_over_first", v.Ratio()},
			{"slope_per_window", orNull(number(v.Trend.Slope), v.Trend.P < 1)}, // Sen's
			{"tau", orNull(number(v.Trend.Tau), v.Trend.P < 1)},
			{"trend_p", orNull(number(v.Trend.P), v.Trend.P < 1)}, // Mann and Kendall's test; null with fewer than 10 windows
			{"drifts", v.Drifts},
		}
	}
	withChance := func(v analyze.Variation) object {
		return append(object{{"cv_by_chance", v.ByChance}}, variation(v)...) // of independent requests
	}
	var regimes any
	if t.Regimes != nil {
		regimes = objects(t.Regimes, func(r analyze.Regime) object { return timeWindowJSON(r.Window) })
	}
	return object{
		{"step_ms", t.Step}, // width of a window
		{"windows", objects(t.Windows, timeWindowJSON)},
		{"rate", withChance(t.Rate)}, {"isl", withChance(t.ISL)}, {"osl", withChance(t.OSL)}, {"context", orNull(variation(t.Context), t.Context.CV.Set)}, // null without block ids
		{"dispersion", objects(t.Dispersions, func(d analyze.Dispersion) object {
			return object{{"window_ms", d.Width}, {"windows", d.Windows}, {"index", d.Index}}
		})},
		{"regimes", regimes}, // null with fewer than 10 windows
		{"summary", strings.Join(changeSentences(t), " ")},
	}
}

func timeWindowJSON(w analyze.Window) object {
	return object{
		{"from_ms", w.From}, {"to_ms", w.To}, {"requests", w.Requests}, {"rate", w.Rate()},
		{"isl_mean", w.ISL.Mean()}, {"isl_cv", w.ISL.CV()}, {"osl_mean", w.OSL.Mean()}, {"osl_cv", w.OSL.CV()},
		{"token_hit_rate", w.HitRate()}, {"context_share", w.ContextShare()}, // null without block ids
	}
}
