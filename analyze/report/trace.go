// Package report builds reports of traces, runs, comparisons, sweeps and
// calibrations. Each report is a value such as [Trace], [Runs] or [Difference]; its
// Document is the report as data, to be written as text, Markdown, CSV or HTML:
//
//	err := report.Trace{Name: "conversation.jsonl", Analysis: a}.Document().WriteText(os.Stdout)
//
// JSON methods write the same results for programs. Unknown values are "-" in text and
// null in JSON, never 0.
package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"moontide/analyze"
	"moontide/analyze/report/doc"
	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/stats"
)

// Trace is the analysis of one trace. Parts that were not requested are nil.
type Trace struct {
	Name     string
	Analysis *analyze.Analysis
	Cache    *Cache
}

// HasBlocks reports whether a row has block ids.
func (d Trace) HasBlocks() bool { return d.Analysis.Prefix != nil }

// Document returns the "DATASET ANALYSIS", from an overview to figures.
func (d Trace) Document() *doc.Document {
	to, a := doc.New("DATASET ANALYSIS", "Trace: "+d.Name), d.Analysis
	overviewSection(to.Section("Overview"), a)
	lengthSection(to.Section("Input sequence length (ISL): tokens of a prompt"), a.ISL)
	lengthSection(to.Section("Output sequence length (OSL): tokens of a response"), a.OSL)
	percentileSection(to.Section("Length percentiles, in tokens"), a)
	reuseSection(to.Section("KV cache / prefix reuse"), a)
	sharingSection(to, a, d.Cache)
	d.Cache.addTo(to)
	arrivalSection(to, a)
	timeSection(to, a)
	sessionSection(to, a)
	s := to.Section("Figures")
	s.Lead = true
	s.Figures(d.figures()...)
	return to
}

func overviewSection(s *doc.Section, a *analyze.Analysis) {
	s.Row("Total requests", doc.Int(a.Requests), "", "")
	arrivalRows(s, a)
	for _, l := range []struct {
		which, note string
		rows        int
	}{
		{"with an estimated ISL", "from text, no tokenizer", a.Lengths.EstimatedISL},
		{"with an estimated OSL", "from text, no tokenizer", a.Lengths.EstimatedOSL},
		{"without an OSL", "counted as 0", a.Lengths.MissingOSL},
	} {
		if l.rows > 0 {
			s.Note("Note", fmt.Sprintf("%s %s: %s.", doc.Count(l.rows, "request"), l.which, l.note))
		}
	}
	if note, warning := orderNotes(a); note != "" {
		s.Note("Estimated", note)
		if warning != "" {
			s.Warn(warning)
		}
	}
	b := a.Prefix
	if b == nil {
		s.Row("Total hash blocks", doc.Absent, "blocks", "no row has block ids")
		s.Row("Unique hash blocks", doc.Absent, "blocks", "no row has block ids")
		return
	}
	if b.Requests < a.Requests {
		s.Row("Requests with block ids", doc.Int(b.Requests), "", "used for prefix reuse")
	}
	s.Row("Total hash blocks", doc.Int(b.TotalBlocks), "blocks", "")
	s.Row("Unique hash blocks", doc.Int(b.UniqueBlocks), "blocks", doc.Share(b.UniqueBlocks, b.TotalBlocks)+" of total")
	s.Row("Block size", doc.Int(b.BlockSize.Tokens), "tokens", b.BlockSize.How)
	if b.BlockSize.How == block.Assumed {
		s.Warn(assumedBlockSize(b.BlockSize) + " Token counts below depend on it; set the block size if it is wrong.")
	}
	if warning := BlockSizeWarning(a); warning != "" {
		s.Warn(warning + " Token counts below are wrong for rows that it does not fit.")
	}
}

// orderNotes notes which results depend on the order of turns without a timestamp, and
// warns if that order is wrong.
func orderNotes(a *analyze.Analysis) (note, warning string) {
	u := a.Untimed
	if u.Turns == 0 {
		return "", ""
	}
	note = fmt.Sprintf("The times of %s are estimated, because they have a delay but no timestamp.", doc.Count(u.Turns, "turn"))
	if a.Arrivals != nil {
		note += fmt.Sprintf(" The estimate assumes %s ms to the first token of a response and %s ms for each further token.",
			stats.Plain(trace.AssumedTTFT), stats.Plain(trace.AssumedTPOT))
	}
	note += " Hit rates, caches, workers, reuse intervals and inferred sessions use the order in the trace."
	if u.Misplaced > 0 {
		warning = fmt.Sprintf("%s without a timestamp cannot have been sent at their position in the trace: the following arrivals are before the end of their delay."+
			" Their hit rates and cache results are wrong. Sort the trace to fix this.", doc.Count(u.Misplaced, "turn"))
	}
	return note, warning
}

func arrivalRows(s *doc.Section, a *analyze.Analysis) {
	at := a.Arrivals
	if at == nil {
		s.Row("Duration", doc.Absent, "s", "no row has a timestamp")
		return
	}
	if timed := at.Requests - at.Estimated; timed < a.Requests {
		s.Row("Requests with a timestamp", doc.Int(timed), "", map[bool]string{true: "the others are estimated", false: "used for arrivals"}[at.Estimated > 0])
	}
	s.Row("Duration, first to last arrival", doc.Fixed(at.Duration()/1000, 3), "s", doc.Duration(at.Duration()))
	s.Row("Request rate", doc.FixedOr(at.Rate, 3), "req/s", noteOr(at.Rate, "requests / duration", "all at the same time"))
	s.Row("Inter-arrival CV", doc.FixedOr(at.CV, 3), "", noteOr(at.CV, "1: Poisson, >1: bursts", "needs two gaps"))
	s.Row("Distinct arrival times", doc.Int(at.DistinctTimestamps), "", "up to "+doc.Int(at.MostAtOnce)+" at once")
	if at.Backwards > 0 {
		s.Row("Rows out of order", doc.Int(at.Backwards), "", "earlier than the row above")
		s.Warn("The rows are not in order of arrival. Arrival statistics use the sorted times;" +
			" hit rates, caches, workers and inferred sessions use the order of rows. Sort the trace to fix this.")
	}
}

func assumedBlockSize(b block.Size) string {
	switch {
	case b.Low > b.High:
		return "The block size is assumed, because no single size fits the ids of all rows."
	case b.High == math.MaxInt:
		return fmt.Sprintf("The block size is assumed, because every size from %s tokens up fits the ids.", doc.Int(b.Low))
	}
	return fmt.Sprintf("The block size is assumed, because every size from %s to %s tokens fits the ids.", doc.Int(b.Low), doc.Int(b.High))
}

// BlockSizeWarning names the number of rows that do not fit the block size and a size that
// fits; "" if all rows fit.
func BlockSizeWarning(a *analyze.Analysis) string {
	p, f := a.Prefix, a.BlockFit
	if p == nil || f.Fits == f.Rows {
		return ""
	}
	text := fmt.Sprintf("Blocks of %s fit the ids of %s of %s", doc.Count(p.BlockSize.Tokens, "token"), doc.Int(f.Fits), doc.Count(f.Rows, "row"))
	switch {
	case f.Better == 0:
		return text + "."
	case f.BetterFits == f.Rows:
		return fmt.Sprintf("%s; %s would fit all.", text, doc.Int(f.Better))
	}
	return fmt.Sprintf("%s; %s would fit %s.", text, doc.Int(f.Better), doc.Int(f.BetterFits))
}

func lengthSection(s *doc.Section, d stats.Sample) {
	s.Row("Average", doc.Fixed(d.Mean, 2), "tokens", "")
	s.Row("Standard deviation", doc.Fixed(d.Std, 2), "tokens", "")
	s.Row("Minimum", doc.Fixed(d.Min, 0), "tokens", "")
	s.Row("Median", doc.Fixed(d.Quantile(0.5), 1), "tokens", "")
	s.Row("99th percentile", doc.Fixed(d.Quantile(0.99), 1), "tokens", "")
	s.Row("Maximum", doc.Fixed(d.Max, 0), "tokens", "")
	s.Row("Total", doc.Fixed(d.Sum, 0), "tokens", "")
}

func percentileSection(s *doc.Section, a *analyze.Analysis) {
	l := a.Lengths
	t := doc.Table{Columns: []string{"percentile", "ISL", "OSL", "ISL / OSL"}, Left: 1}
	for _, p := range []float64{1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9} {
		name := "p" + stats.Plain(p)
		if p == 50 {
			name += " (median)"
		}
		t.Add(name, doc.Fixed(a.ISL.Quantile(p/100), 1), doc.Fixed(a.OSL.Quantile(p/100), 1), doc.FixedOr(quantileOf(l.Ratios, p/100, 1), 2))
	}
	s.Table(t)
	const alike = "all lengths are equal"
	s.Row("ISL / OSL, of the sums", doc.FixedOr(l.Ratio, 2), "", noteOr(l.Ratio, "", "no response has tokens"))
	s.Row("Correlation of ISL and OSL", doc.FixedOr(l.Pearson, 3), "", noteOr(l.Pearson, "Pearson, linear", alike))
	s.Row("Correlation of their ranks", doc.FixedOr(l.Spearman, 3), "", noteOr(l.Spearman, "Spearman, monotonic", alike))
}

func reuseSection(s *doc.Section, a *analyze.Analysis) {
	why, p := "no row has block ids", a.Prefix
	if p == nil {
		sessions := ""
		if a.Sessions == nil {
			sessions = ", sessions"
		}
		s.Text("No row has block ids (hash_ids): hit rates, shared prefixes" + sessions + ", and the hits of caches and workers are unknown.")
	} else {
		s.Text("A block of a prompt is a hit if it and all blocks before it occurred in earlier requests.",
			"The rates are those of an infinite cache, which starts empty and never evicts.")
		s.Row("Block hit rate", doc.Percent(p.Infinite.Block), "%", "hit blocks / all blocks")
		s.Row("Token hit rate", doc.PercentOr(p.Infinite.Token), "%", "hit tokens / all tokens")
		s.Row("Mean request hit rate", doc.Percent(p.Infinite.MeanRequest), "%", "mean of hit/own blocks")
		s.Row("Requests with no hit", doc.Int(p.NoHit), "", doc.Share(p.NoHit, p.Requests))
		s.Row("Requests with all blocks hit", doc.Int(p.AllHit), "", doc.Share(p.AllHit, p.Requests))
		if p.Requests < a.Requests {
			s.Text("These rates exclude rows without block ids (hash_ids absent or empty).")
		}
		why = "no prompt has tokens"
	}
	s.Text("Context is the shared part of a prompt: its leading blocks that also occur in other requests (observed),",
		"or the value declared by the generator of the trace. The rest is the unique prompt.")
	contextRows(s, "observed", a.Observed, why)
	contextRows(s, "declared", a.Declared, "no row declares it")
}

func contextRows(s *doc.Section, view string, c analyze.Context, why string) {
	s.Row("Average context, "+view, doc.FixedOr(c.Mean, 2), "tokens", noteOr(c.Mean, "", why))
	s.Row("Average unique prompt, "+view, doc.FixedOr(c.UniqueMean, 2), "tokens", noteOr(c.UniqueMean, "", why))
	s.Row("Shared prefix ratio, "+view, doc.PercentOr(c.SharedRatio), "%", noteOr(c.SharedRatio, "context / all tokens", why))
}

func sharingSection(to *doc.Document, a *analyze.Analysis, c *Cache) {
	p := a.Prefix
	if p == nil {
		return
	}
	s := to.Section("Sharing")
	s.Row("Requests with a shared root", doc.Int(p.Roots.Requests), "", doc.Share(p.Roots.Requests, p.Requests))
	s.Row("Shared roots", doc.Int(p.Roots.Shared), "", "of "+doc.Count(p.Roots.Distinct, "first block"))
	if p.Unchained > 0 {
		s.Warn(doc.Count(p.Unchained, "prompt") + " have a known block after a new one: their ids do not stand for the whole prefix before them, as content hashes of single blocks do." +
			" A prefix cache has fewer hits than shown. Run moontide check to see the rows, and chain the ids.")
	}
	why := "no block is reused"
	if a.Arrivals == nil {
		why = "no row has a timestamp"
	}
	median, p90 := quantileOf(p.Reuse.Time, 0.5, 1000), quantileOf(p.Reuse.Time, 0.9, 1000)
	s.Row("Reuse interval, median", doc.FixedOr(median, 3), "s", noteOr(median, "since the last use", why))
	s.Row("Reuse interval, p90", doc.FixedOr(p90, 3), "s", noteOr(p90, "", why))
	if c.known() && p.HitBlocks > 0 {
		s.Row("Stack distance, median", doc.Int(c.Curve.SmallestByBlock(.5)), "blocks", "LRU size for half the hits")
		s.Row("Stack distance, p90", doc.Int(c.Curve.SmallestByBlock(.9)), "blocks", "")
	}
	roots := doc.Table{Columns: []string{"shared root (first block)", "requests", "share", "common blocks", "common tokens"}, Left: 1}
	for _, r := range p.Roots.Top[:min(5, len(p.Roots.Top))] {
		roots.Add(strconv.FormatUint(r.ID, 10), doc.Int(r.Requests), doc.Share(r.Requests, p.Requests), doc.Int(r.ChainBlocks), doc.Int(r.ChainTokens))
	}
	s.Table(roots)
}

func arrivalSection(to *doc.Document, a *analyze.Analysis) {
	at := a.Arrivals
	if at == nil {
		return
	}
	s := to.Section("Arrivals")
	s.Row("Peak within 1 s", doc.Int(at.Peak1s), "", "requests")
	s.Row("Peak within 60 s", doc.Int(at.Peak60s), "", "requests")
	s.Row("Index of dispersion, 1 s", doc.FixedOr(at.Dispersion1s, 2), "", noteOr(at.Dispersion1s, "1: Poisson, >1: bursts", "needs two such windows"))
	s.Row("Index of dispersion, 60 s", doc.FixedOr(at.Dispersion60s, 2), "", noteOr(at.Dispersion60s, "", "needs two such windows"))
	if g := at.Grid; g != nil {
		s.Row("Time grid", doc.Fixed(g.Step, 3), "ms", doc.Percent(g.Share)+" % on it")
		s.Text(gridSentence(at))
	}
}

func gridSentence(at *analyze.Arrivals) string {
	switch g := at.Grid; {
	case at.Requests-at.Estimated > g.Ticks+at.Requests/10: // a tenth or more share a timestamp
		return "Arrival times lie on a grid, most likely because the recording used a coarse clock." +
			" A replay at the original timing sends all requests of a step at once, in bursts that did not occur in production."
	case g.Ticks == g.Steps+1:
		return "Requests arrive at a constant rate."
	}
	return "Arrival times come from a coarse clock, but few requests share a step, so a replay adds no bursts."
}

func sessionSection(to *doc.Document, a *analyze.Analysis) {
	of := a.Sessions
	if of == nil {
		graphSection(to, a.Graph)
		return
	}
	title, how := "Sessions", "session_id"
	if of.Inferred {
		title, how = "Sessions (inferred from block ids)", "inferred"
	}
	s := to.Section(title)
	if of.Inferred {
		s.Text("A request is the next turn of an earlier one if it extends its whole prompt.")
	}
	s.Row("Sessions", doc.Int(of.Sessions), "", how)
	s.Row("Sessions of several turns", doc.Int(of.MultiTurn), "", doc.Share(of.MultiTurn, of.Sessions))
	s.Row("Turns, mean", doc.Fixed(of.Turns.Mean, 2), "", "up to "+doc.Fixed(of.Turns.Max, 0))
	why := "no second turn"
	if of.MultiTurn > 0 {
		why = "turns have no times"
	}
	gap, delay, growth := quantileOf(of.Gap, 0.5, 1000), quantileOf(of.Delay, 0.5, 1000), quantileOf(of.Growth, 0.5, 1)
	s.Row("Arrival to next turn, median", doc.FixedOr(gap, 3), "s", noteOr(gap, "response and think time", why))
	if of.Tool.Count > 0 {
		think, tool := quantileOf(of.Think, 0.5, 1000), quantileOf(of.Tool, 0.5, 1000)
		s.Row("Given think time, median", doc.FixedOr(think, 3), "s", noteOr(think, doc.Count(of.Think.Count, "delay")+" of kind think", "no delay of kind think"))
		s.Row("Given tool time, median", doc.FixedOr(tool, 3), "s", doc.Count(of.Tool.Count, "delay")+" of kind tool")
	} else {
		s.Row("Given think time, median", doc.FixedOr(delay, 3), "s", noteOr(delay, "delay", "no later turn has one"))
	}
	s.Row("Prompt growth per turn, median", doc.FixedOr(growth, 0), "tokens", noteOr(growth, "", "no second turn"))
	relationRows(s, of.Relations)
	graphSection(to, a.Graph)
}

// quantileOf returns a quantile divided by unit.
func quantileOf(d stats.Sample, p, unit float64) trace.Opt[float64] {
	return trace.Opt[float64]{Value: d.Quantile(p) / unit, Set: d.Count > 0}
}

// noteOr returns the note on a value, or the reason why it is missing.
func noteOr(v trace.Opt[float64], note, why string) string {
	if !v.Set {
		return why
	}
	return note
}

// graphSection describes the rows that wait for rows they name.
func graphSection(to *doc.Document, g *analyze.Graph) {
	if g == nil {
		return
	}
	s := to.Section("Graph of requests (after)")
	s.Text("Rows that wait for each other or share a session id form one group, such as an agent with its sub-agents. A replay counts a group as one session.")
	s.Row("Groups", doc.Int(g.Sessions), "", "")
	s.Row("Requests per group, mean", doc.Fixed(g.Requests.Mean, 2), "", "up to "+doc.Fixed(g.Requests.Max, 0))
	s.Row("Requests that wait for several", doc.Int(g.Joins), "", "")
	if g.Lost > 0 {
		s.Row("Unknown ids in after", doc.Int(g.Lost), "", "lost turns")
	}
}

// relationRows describes how prompts relate to the previous turn, unless all extend it.
func relationRows(s *doc.Section, r *block.Relations) {
	if r == nil || r.Shortened+r.Rewritten == 0 {
		return
	}
	turns := r.Turns()
	row := func(what string, n int) {
		if n > 0 {
			s.Row(what, doc.Int(n), "", doc.Share(n, turns))
		}
	}
	row("Turns that extend the previous one", r.Extend)
	row("Turns with a shorter prompt", r.Shortened)
	row("Turns that rewrite the previous one", r.Rewritten)
	row("Turns without block ids", r.Unknown)
}

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
			doc.Duration(w.From), doc.Int(w.Requests), doc.FixedOr(w.Rate(), 3),
			tokens(w.MeanISL()), doc.FixedOr(w.ISL.CV(), 2), tokens(w.MeanOSL()), doc.FixedOr(w.OSL.CV(), 2),
		}
		if a.Prefix != nil {
			row = append(row, percentText(w.HitRate(), 1, " %"), percentText(w.ContextShare(), 1, " %"))
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

// percentText formats a share in percent, with a unit such as " %".
func percentText(share trace.Opt[float64], decimals int, unit string) string {
	if !share.Set {
		return doc.Absent
	}
	return doc.Fixed(100*share.Value, decimals) + unit
}

// tokens shows a mean length.
func tokens(mean trace.Opt[float64]) string {
	if mean.Value < 100 {
		return doc.FixedOr(mean, 1)
	}
	return doc.FixedOr(mean, 0)
}

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
