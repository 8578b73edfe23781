package analyze

import (
	"moontide/trace"
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

// lengthMarks counts rows whose lengths do not come from a tokenizer.
type lengthMarks struct{ estimatedISL, estimatedOSL, missingOSL int }

func (m *lengthMarks) add(r *trace.Request) {
	if r.Extra == nil {
		return
	}
	count := func(n *int, mark, length string) {
		if r.Marked(mark, length) {
			*n++
		}
	}
	count(&m.estimatedISL, trace.Estimated, "input_length")
	count(&m.estimatedOSL, trace.Estimated, "output_length")
	count(&m.missingOSL, trace.Missing, "output_length")
}

func lengthsOf(rows []row) (isl, osl stats.Sample, l Lengths) {
	in, out := make([]int32, len(rows)), make([]int32, len(rows))
	var ratios []float64
	var inSum, outSum int
	for i, r := range rows {
		in[i], out[i] = r.isl, r.osl
		inSum += int(r.isl)
		outSum += int(r.osl)
		if r.osl > 0 {
			ratios = append(ratios, float64(r.isl)/float64(r.osl))
		}
	}
	l.Ratio = ratio(inSum, outSum)
	l.Ratios = stats.Of(ratios)
	sortedIn, inRanks := stats.Ranks(in)
	sortedOut, outRanks := stats.Ranks(out)
	isl, osl = stats.Of(sortedIn), stats.Of(sortedOut)
	if isl.Min < isl.Max && osl.Min < osl.Max {
		l.Pearson = trace.Some(stats.Pearson(floats(in), floats(out)))
		l.Spearman = trace.Some(stats.Pearson(inRanks, outRanks))
	}
	return isl, osl, l
}

func floats(lengths []int32) []float64 {
	values := make([]float64, len(lengths))
	for i, length := range lengths {
		values[i] = float64(length)
	}
	return values
}
