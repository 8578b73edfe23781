package analyze

import (
	"moontide/analyze/dist"
	"moontide/trace"
)

// Lengths is how the prompt and the answer of a request go together.
type Lengths struct {
	// Ratio is the sum of ISL over the sum of OSL, absent where all answers are
	// empty.
	Ratio trace.Opt[float64]
	// Ratios is ISL over OSL of each request whose OSL is not 0.
	Ratios dist.Distribution
	// Pearson is the linear correlation of ISL and OSL, and Spearman that of
	// their ranks, in which equal lengths share the mean of theirs: it sees any
	// monotonic relation, and an outlier is only the next rank. Both are -1..1,
	// and absent where all prompts or all answers are equally long.
	Pearson, Spearman trace.Opt[float64]
}

func lengthsOf(rows []row) (isl, osl dist.Distribution, l Lengths) {
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
	l.Ratios = dist.Of(ratios)
	sortedIn, inRanks := ranked(in)
	sortedOut, outRanks := ranked(out)
	isl, osl = dist.Of(sortedIn), dist.Of(sortedOut)
	if isl.Min < isl.Max && osl.Min < osl.Max {
		l.Pearson = trace.Some(dist.Pearson(floats(in), floats(out)))
		l.Spearman = trace.Some(dist.Pearson(inRanks, outRanks))
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

// ranked returns the lengths in order and the rank of each, from 1, where equal
// lengths share the mean of their ranks.
func ranked(lengths []int32) (sorted, ranks []float64) {
	order := inOrder(lengths)
	sorted, ranks = make([]float64, len(order)), make([]float64, len(order))
	for i := 0; i < len(order); {
		length := lengths[order[i]]
		end := i + 1
		for end < len(order) && lengths[order[end]] == length {
			end++
		}
		mean := float64(i+1+end) / 2 // of the ranks i+1 to end
		for ; i < end; i++ {
			sorted[i] = float64(length)
			ranks[order[i]] = mean
		}
	}
	return sorted, ranks
}

// inOrder returns the indices of lengths, none of which is negative, by length.
// It is a radix sort by 11 bits at a time: one pass for the lengths of answers
// and two for those of prompts, where sorting by comparison takes six times as
// long, more than counting all blocks.
func inOrder(lengths []int32) []uint32 {
	const bits = 11
	longest := int32(0)
	order := make([]uint32, len(lengths))
	for i, length := range lengths {
		order[i] = uint32(i)
		longest = max(longest, length)
	}
	sorted := make([]uint32, len(lengths))
	for shift := 0; longest>>shift > 0; shift += bits {
		var next [1 << bits]int // where the next index of each digit goes
		for _, length := range lengths {
			next[length>>shift%(1<<bits)]++
		}
		sum := 0
		for digit, n := range next {
			next[digit] = sum
			sum += n
		}
		for _, i := range order {
			digit := lengths[i] >> shift % (1 << bits)
			sorted[next[digit]] = i
			next[digit]++
		}
		order, sorted = sorted, order
	}
	return order
}
