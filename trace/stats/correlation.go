package stats

import "math"

// Pearson is the linear correlation of pairs, x[i] with y[i], -1..1: NaN where
// there are none or one side is constant. The slices must be equally long. On
// [Ranks] it is Spearman's correlation.
func Pearson(x, y []float64) float64 {
	// stats.Correlation is the same number at twenty times the cost.
	meanX, meanY := mean(x), mean(y)
	var xx, xy, yy float64
	for i := range x {
		dx, dy := x[i]-meanX, y[i]-meanY
		xx += dx * dx
		xy += dx * dy
		yy += dy * dy
	}
	r := xy / math.Sqrt(xx) / math.Sqrt(yy)
	if xx == 0 || yy == 0 {
		return math.NaN()
	}
	return min(max(r, -1), 1) // a perfect one may exceed 1 by its last digit
}

// Ranks returns lengths, none of which is negative, in order, and the rank of
// each, from 1; equal lengths share the mean of their ranks. There are at most
// 2^32 of them.
func Ranks(lengths []int32) (sorted, ranks []float64) {
	keys := make([]uint64, len(lengths))
	for i, length := range lengths {
		keys[i] = uint64(length)<<32 | uint64(i)
	}
	keys = radixSorted(keys, 32)
	sorted, ranks = make([]float64, len(keys)), make([]float64, len(keys))
	for i := 0; i < len(keys); {
		length := keys[i] >> 32
		end := i + 1
		for end < len(keys) && keys[end]>>32 == length {
			end++
		}
		mean := float64(i+1+end) / 2 // of the ranks i+1 to end
		for ; i < end; i++ {
			sorted[i] = float64(length)
			ranks[uint32(keys[i])] = mean
		}
	}
	return sorted, ranks
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
