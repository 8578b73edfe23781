// Package report is what results look like: text for people, JSON for programs.
//
// A [Dataset] shows what a trace is like, as
// [moontide/analyze.Trace] found it; [ServingText] and [Summary] what a replay
// measured. All take results as they are and compute nothing that these do not
// hold; what could not be known is "-" in text and null in JSON, never 0.
package report

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"moontide/analyze"
	"moontide/trace"
	"moontide/trace/stats"
)

// Dataset is what is known about a trace. Parts that were not asked for are
// nil and left out.
type Dataset struct {
	Name     string
	Analysis *analyze.Analysis
	Cache    *Cache
	Service  *Service
}

// Text writes the "DATASET ANALYSIS" block: an overview, ISL and OSL, how
// prompts share their beginnings, and so on to a summary in words. Lines have
// at most 80 columns, but for a long name. The only errors are those of w.
func (d Dataset) Text(w io.Writer) error { return write(w, d.document().text()) }

// Markdown writes the same with tables as GitHub reads them.
func (d Dataset) Markdown(w io.Writer) error { return write(w, d.document().markdown()) }

// HTML writes the same, with figures, as one page that needs no network.
func (d Dataset) HTML(w io.Writer) error {
	page, err := d.document().html()
	if err != nil {
		return err
	}
	return write(w, page)
}

func write(w io.Writer, text []byte) error {
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	return nil
}

func (d Dataset) document() *document {
	s, a := &document{title: "DATASET ANALYSIS", subject: "Trace: " + d.Name}, d.Analysis
	datasetOverview(s, a)
	datasetLengths(s, "Input sequence length (ISL): tokens of a prompt", a.ISL)
	datasetLengths(s, "Output sequence length (OSL): tokens of an answer", a.OSL)
	datasetPercentiles(s, a)
	datasetReuse(s, a)
	datasetSharing(s, a, d.Cache)
	d.Cache.describe(s)
	datasetArrivals(s, a)
	d.Service.describe(s, a.Arrivals != nil)
	datasetSessions(s, a)
	s.section("Summary")
	s.paragraph(datasetSummary(a)...)
	s.section("Figures")
	figures, _ := datasetFigures(d) // the text says what is missing
	for _, f := range figures {
		s.figure(f)
	}
	return s
}

func datasetOverview(s *document, a *analyze.Analysis) {
	s.section("Overview")
	s.row("Total requests", grouped(a.Requests), "", "")
	for _, marked := range []struct {
		name, note string
		rows       int
	}{
		{"Requests with an estimated ISL", "from a text, not by a tokenizer", a.Lengths.EstimatedISL},
		{"Requests with an estimated OSL", "from a text, not by a tokenizer", a.Lengths.EstimatedOSL},
		{"Requests without an OSL", "counted as 0", a.Lengths.MissingOSL},
	} {
		if marked.rows > 0 {
			s.row(marked.name, grouped(marked.rows), "", marked.note)
		}
	}
	if at := a.Arrivals; at == nil {
		s.row("Duration", absent, "s", "no row has a timestamp")
	} else {
		if at.Requests < a.Requests {
			s.row("Requests with a timestamp", grouped(at.Requests), "", "used for arrivals")
		}
		s.row("Duration, first to last arrival", decimals(at.Duration()/1000, 3), "s", span(at.Duration()))
		s.row("Request rate", optional(at.Rate, 3), "req/s", noteOr(at.Rate, "requests / duration", "one single time"))
		s.row("Inter-arrival CV", optional(at.CV, 3), "", noteOr(at.CV, "1: Poisson, >1: bursts", "needs two gaps"))
		s.row("Distinct arrival times", grouped(at.DistinctTimestamps), "", "up to "+grouped(at.MostAtOnce)+" at once")
		if at.Backwards > 0 {
			s.row("Rows that go back in time", grouped(at.Backwards), "", "before the row above")
			s.paragraph("The rows are not in order of arrival. What is said of arrivals is of the sorted times;",
				"hits, caches, workers and inferred sessions go by the order of the rows. convert --sort puts them in order.")
		}
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
	if warning := BlockSizeWarning(a); warning != "" {
		s.paragraph("Warning: " + warning + " What is counted in tokens below is wrong where it does not fit.")
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

// BlockSizeWarning says how many rows the block size does not fit, and which size
// would, in a sentence; it is empty where there is nothing to warn of.
func BlockSizeWarning(a *analyze.Analysis) string {
	p, f := a.Prefix, a.BlockFit
	if p == nil || f.Fits == f.Rows {
		return ""
	}
	text := fmt.Sprintf("Blocks of %s fit the ids of %s of %s", counted(p.BlockSize.Tokens, "token"), grouped(f.Fits), counted(f.Rows, "row"))
	switch {
	case f.Better == 0:
		return text + "."
	case f.BetterFits == f.Rows:
		return fmt.Sprintf("%s; %s would fit all.", text, grouped(f.Better))
	}
	return fmt.Sprintf("%s; %s would fit %s.", text, grouped(f.Better), grouped(f.BetterFits))
}

func datasetLengths(s *document, title string, d stats.Sample) {
	s.section(title)
	s.row("Average", decimals(d.Mean, 2), "tokens", "")
	s.row("Standard deviation", decimals(d.Std, 2), "tokens", "")
	s.row("Minimum", decimals(d.Min, 0), "tokens", "")
	s.row("Maximum", decimals(d.Max, 0), "tokens", "")
	s.row("Total", decimals(d.Sum, 0), "tokens", "")
}

// datasetPercentiles shows how lengths are spread and how the two of a request
// go together.
func datasetPercentiles(s *document, a *analyze.Analysis) {
	s.section("Length percentiles, in tokens")
	l := a.Lengths
	t := table{columns: []string{"percentile", "ISL", "OSL", "ISL / OSL"}}
	for _, p := range []float64{1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9} {
		name := "p" + strconv.FormatFloat(p, 'f', -1, 64)
		if p == 50 {
			name += " (median)"
		}
		ratio := trace.Opt[float64]{Value: l.Ratios.Quantile(p / 100), Set: l.Ratios.Count > 0}
		t.add(name, decimals(a.ISL.Quantile(p/100), 1), decimals(a.OSL.Quantile(p/100), 1), optional(ratio, 2))
	}
	s.table(t)
	s.pause()
	const alike = "lengths are all alike"
	s.row("ISL / OSL, of the sums", optional(l.Ratio, 2), "", noteOr(l.Ratio, "", "no answer has tokens"))
	s.row("Correlation of ISL and OSL", optional(l.Pearson, 3), "", noteOr(l.Pearson, "Pearson, linear", alike))
	s.row("Correlation of their ranks", optional(l.Spearman, 3), "", noteOr(l.Spearman, "Spearman, monotonic", alike))
}

func datasetReuse(s *document, a *analyze.Analysis) {
	s.section("KV cache / prefix reuse")
	if p := a.Prefix; p == nil {
		unknown := "hit rates, what prompts share, and what caches or workers would hit, are not known."
		if a.Sessions == nil {
			unknown = "hit rates, what prompts share, which are turns of a session, and what caches or workers would hit, are not known."
		}
		s.paragraph("No row has block ids (hash_ids), so " + unknown)
	} else {
		s.paragraph("A block of a prompt is a hit if it and all blocks before it were in earlier requests.",
			"The rates are those of an infinite cache, which starts empty and never evicts.")
		s.row("Block hit rate", percent(p.Infinite.Block), "%", "hit blocks / all blocks")
		s.row("Token hit rate", optionalPercent(p.Infinite.Token), "%", "hit tokens / all tokens")
		s.row("Mean request hit rate", percent(p.Infinite.MeanRequest), "%", "mean of hit/own blocks")
		s.row("Requests with no hit", grouped(p.NoHit), "", share(p.NoHit, p.Requests))
		s.row("Requests with every block hit", grouped(p.AllHit), "", share(p.AllHit, p.Requests))
		if p.Requests < a.Requests {
			s.paragraph("Rows without block ids, absent or an empty list, are in none of these.")
		}
	}
	s.pause()
	s.paragraph("Context is what a prompt shares: its leading blocks that other requests have, too (observed),",
		"or what the generator of the trace wrote down (declared). The rest is the unique prompt.")
	why := "no row has block ids"
	if a.Prefix != nil {
		why = "no prompt has tokens"
	}
	datasetContext(s, "observed", a.Observed, why)
	datasetContext(s, "declared", a.Declared, "no row declares it")
}

// datasetContext shows one of the two views of what prompts share.
func datasetContext(s *document, view string, c analyze.Context, why string) {
	s.row("Average context, "+view, optional(c.Mean, 2), "tokens", noteOr(c.Mean, "", why))
	s.row("Average unique prompt, "+view, optional(c.UniqueMean, 2), "tokens", noteOr(c.UniqueMean, "", why))
	s.row("Shared prefix ratio, "+view, optionalPercent(c.SharedRatio), "%", noteOr(c.SharedRatio, "context / all tokens", why))
}
