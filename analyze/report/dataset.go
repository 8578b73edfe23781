// Package report is what results look like: text for people, JSON for programs.
//
// [DatasetText] and [DatasetJSON] show what a trace is like, as
// [moontide/analyze.Trace] found it; [ServingText] and [Summary] what a replay
// measured. All take results as they are and compute nothing that these do not
// hold; what could not be known is "-" in text and null in JSON, never 0.
package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"

	"moontide/analyze"
	"moontide/analyze/dist"
	"moontide/trace"
)

// DatasetText writes the "DATASET ANALYSIS" block of the trace called name: an
// overview, ISL and OSL, how prompts share their beginnings, and a summary in
// words. Lines have at most 80 columns of plain ASCII, but for a long name. The
// only errors are those of w.
func DatasetText(w io.Writer, name string, a *analyze.Analysis) error {
	var s sheet
	fmt.Fprintf(&s, "DATASET ANALYSIS\n%s\nTrace: %s\n", strings.Repeat("=", sheetWidth), oneLine(name))
	datasetOverview(&s, a)
	datasetLengths(&s, "Input sequence length (ISL): tokens of a prompt", a.ISL)
	datasetLengths(&s, "Output sequence length (OSL): tokens of an answer", a.OSL)
	datasetReuse(&s, a)
	s.section("Summary")
	s.paragraph(datasetSummary(a)...)
	if _, err := w.Write(s.Bytes()); err != nil {
		return fmt.Errorf("writing dataset analysis: %w", err)
	}
	return nil
}

func datasetOverview(s *sheet, a *analyze.Analysis) {
	s.section("Overview")
	s.row("Total requests", grouped(a.Requests), "", "")
	if at := a.Arrivals; at == nil {
		s.row("Duration", absent, "s", "no row has a timestamp")
	} else {
		if at.Requests < a.Requests {
			s.row("Requests with a timestamp", grouped(at.Requests), "", "used for arrivals")
		}
		s.row("Duration, first to last arrival", decimals(at.Duration()/1000, 3), "s", span(at.Duration()))
		s.row("Request rate", optional(at.Rate, 3), "req/s", "requests / duration")
		s.row("Inter-arrival CV", optional(at.CV, 3), "", "1: Poisson, >1: bursts")
		s.row("Distinct arrival times", grouped(at.DistinctTimestamps), "", "up to "+grouped(at.MostAtOnce)+" at once")
	}
	p := a.Prefix
	if p == nil {
		s.row("Total hash blocks", absent, "blocks", "no row has block ids")
		s.row("Unique hash blocks", absent, "blocks", "no row has block ids")
		return
	}
	if p.Requests < a.Requests {
		s.row("Requests with block ids", grouped(p.Requests), "", "used for prefix reuse")
	}
	s.row("Total hash blocks", grouped(p.TotalBlocks), "blocks", "")
	s.row("Unique hash blocks", grouped(p.UniqueBlocks), "blocks", share(p.UniqueBlocks, p.TotalBlocks)+" of total")
	s.row("Block size", grouped(p.BlockSize.Tokens), "tokens", p.BlockSize.How)
	if p.BlockSize.How == trace.Assumed {
		s.paragraph(assumedBlockSize(p.BlockSize), "What is counted in tokens below depends on it; --block-size sets it.")
	}
}

// assumedBlockSize says why a block size could not be detected.
func assumedBlockSize(b trace.BlockSize) string {
	switch {
	case b.Low > b.High:
		return "The block size is assumed: no one size fits the ids of every row."
	case b.High == math.MaxInt:
		return fmt.Sprintf("The block size is assumed: every size from %s tokens fits the ids.", grouped(b.Low))
	default:
		return fmt.Sprintf("The block size is assumed: every size from %s to %s tokens fits the ids.",
			grouped(b.Low), grouped(b.High))
	}
}

func datasetLengths(s *sheet, title string, d dist.Distribution) {
	s.section(title)
	s.row("Average", decimals(d.Mean, 2), "tokens", "")
	s.row("Standard deviation", decimals(d.Std, 2), "tokens", "")
	s.row("Minimum", decimals(d.Min, 0), "tokens", "")
	s.row("Median (p50)", decimals(d.Quantile(0.50), 1), "tokens", "")
	s.row("p90", decimals(d.Quantile(0.90), 1), "tokens", "")
	s.row("p99", decimals(d.Quantile(0.99), 1), "tokens", "")
	s.row("Maximum", decimals(d.Max, 0), "tokens", "")
	s.row("Total", decimals(d.Sum, 0), "tokens", "")
}

func datasetReuse(s *sheet, a *analyze.Analysis) {
	s.section("KV cache / prefix reuse")
	if p := a.Prefix; p == nil {
		s.paragraph("No row has block ids (hash_ids), so hit rates are not known.")
	} else {
		s.paragraph("A block of a prompt is a hit if it and all blocks before it were in earlier requests.",
			"The rates are those of an infinite cache, which starts empty and never evicts.")
		s.row("Block hit rate", percent(p.Infinite.Block), "%", "hit blocks / all blocks")
		s.row("Token hit rate", optionalPercent(p.Infinite.Token), "%", "hit tokens / all tokens")
		s.row("Mean request hit rate", percent(p.Infinite.MeanRequest), "%", "mean of hit/own blocks")
		s.row("Requests with no hit", grouped(p.NoHit), "", share(p.NoHit, p.Requests))
		s.row("Requests with every block hit", grouped(p.AllHit), "", share(p.AllHit, p.Requests))
	}
	s.WriteByte('\n')
	s.paragraph("Context is what a prompt shares: its leading blocks whose ids occur more than once in the trace (observed),",
		"or what the generator of the trace wrote down (declared). The rest is the unique prompt.")
	datasetContext(s, "observed", a.Observed)
	datasetContext(s, "declared", a.Declared)
}

// datasetContext shows one of the two views of what prompts share.
func datasetContext(s *sheet, view string, c analyze.Context) {
	lengths, ratio := "", "context / all tokens"
	if c == (analyze.Context{}) {
		lengths, ratio = "not in this trace", "not in this trace"
	}
	s.row("Average context, "+view, optional(c.Mean, 2), "tokens", lengths)
	s.row("Average unique prompt, "+view, optional(c.UniqueMean, 2), "tokens", lengths)
	s.row("Shared prefix ratio, "+view, optionalPercent(c.SharedRatio), "%", ratio)
}

const sheetWidth = 80

// sheet is a page of aligned rows under headings.
type sheet struct{ bytes.Buffer }

func (s *sheet) section(title string) {
	fmt.Fprintf(s, "\n%s\n%s\n", title, strings.Repeat("-", sheetWidth))
}

// row writes a value with its unit and a note of at most 23 columns.
func (s *sheet) row(label, value, unit, note string) {
	line := fmt.Sprintf("  %-32s%15s %-7s%s", label, value, unit, note)
	s.WriteString(strings.TrimRight(line, " ") + "\n")
}

// paragraph writes sentences, broken between words.
func (s *sheet) paragraph(sentences ...string) {
	column := 0
	for _, word := range strings.Fields(strings.Join(sentences, " ")) {
		switch {
		case column == 0:
			s.WriteString("  ")
			column = 2
		case column+1+len(word) > sheetWidth:
			s.WriteString("\n  ")
			column = 2
		default:
			s.WriteByte(' ')
			column++
		}
		s.WriteString(word)
		column += len(word)
	}
	s.WriteByte('\n')
}
