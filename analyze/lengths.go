package analyze

import (
	"math"

	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/stats"
)

// Lengths is the relation between the prompt and the answer of a request.
type Lengths struct {
	// Ratio is the sum of ISL over the sum of OSL, absent if all answers are empty.
	Ratio trace.Opt[float64]
	// Ratios is ISL over OSL of each request whose OSL is not 0.
	Ratios stats.Sample
	// Pearson is the linear correlation of ISL and OSL, Spearman the correlation of
	// their ranks, -1..1. Both are absent if all prompts or all answers have the
	// same length.
	Pearson, Spearman trace.Opt[float64]
	// EstimatedISL and EstimatedOSL are the numbers of rows whose length is marked
	// as estimated from text. MissingOSL is the number of rows without an OSL,
	// which is treated as 0.
	EstimatedISL, EstimatedOSL, MissingOSL int
}

// addMarks counts the lengths of a row that do not come from a tokenizer.
func (l *Lengths) addMarks(r *trace.Request) {
	if r.Extra == nil {
		return
	}
	count := func(n *int, mark, length string) {
		if r.Marked(mark, length) {
			*n++
		}
	}
	count(&l.EstimatedISL, trace.Estimated, "input_length")
	count(&l.EstimatedOSL, trace.Estimated, "output_length")
	count(&l.MissingOSL, trace.Missing, "output_length")
}

// manyRows is the number of rows above which memory matters more than time.
const manyRows = 1 << 20

// of describes lengths. It takes memory for each distinct length only.
func (l *Lengths) of(rows *rows) (isl, osl stats.Sample) {
	var in, out, ratios stats.Collector
	for _, r := range rows.all {
		in.Add(float64(r.isl))
		out.Add(float64(r.osl))
		if r.osl > 0 {
			ratios.Add(float64(r.isl) / float64(r.osl))
		}
	}
	isl, osl, l.Ratios = in.Sample(), out.Sample(), ratios.Sample()
	l.Ratio = trace.Ratio(int(isl.Sum), int(osl.Sum))
	if isl.Min < isl.Max && osl.Min < osl.Max {
		own := func(x float64) float64 { return x }
		l.Pearson = trace.Some(correlation(rows, own, own))
		l.Spearman = trace.Some(correlation(rows, isl.Ranks(), osl.Ranks()))
	}
	return isl, osl
}

// correlation returns the linear correlation of functions of ISL and OSL.
func correlation(rows *rows, in, out func(float64) float64) float64 {
	var inMean, outMean, inSquares, outSquares, products float64
	n := 0.0
	for _, r := range rows.all { // Welford, 1962
		n++
		x, y := in(float64(r.isl))-inMean, out(float64(r.osl))-outMean
		inMean += x / n
		outMean += y / n
		after := out(float64(r.osl)) - outMean
		inSquares += x * x * (n - 1) / n
		outSquares += y * after
		products += x * after
	}
	return min(max(products/math.Sqrt(inSquares*outSquares), -1), 1)
}

// BlockFit reports how many rows a block size fits: rows with ISL / size block ids,
// rounded up or down. If it does not fit most rows, it is wrong, and so are all
// token counts derived from it.
type BlockFit struct {
	// Rows is the number of rows with ids; Fits is how many of them the size fits.
	Rows, Fits int
	// Better is a size that fits more rows, and BetterFits is how many: the size
	// that fits all rows or else the best power of two. Both are 0 if there is
	// none.
	Better, BetterFits int
}

// maxTried is the largest power of two to try. Engines use smaller blocks.
const maxTried = 16384

func (c *collector) blockFit(used block.Size) BlockFit {
	f := BlockFit{Rows: c.prefix.requests, Fits: c.fitting(used.Tokens)}
	if f.Fits == f.Rows {
		return f
	}
	try := func(tokens int) {
		if fits := c.fitting(tokens); fits > max(f.Fits, f.BetterFits) {
			f.Better, f.BetterFits = tokens, fits
		}
	}
	try(c.detector.Size().Tokens)
	for tokens := 1; tokens <= maxTried && f.BetterFits < f.Rows; tokens *= 2 {
		try(tokens)
	}
	return f
}

// fitting returns the number of rows that a block size fits.
func (c *collector) fitting(tokens int) int {
	n := 0
	for i, runs := range c.prefix.runs.byRow {
		isl := int(c.rows.at(i).isl)
		blocks, floor := countBlocks(runs), isl/tokens
		if blocks == floor || blocks == floor+1 && isl%tokens > 0 {
			n++
		}
	}
	return n
}
