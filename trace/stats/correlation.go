package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Pearson returns the linear correlation of x[i] with y[i], -1..1, or NaN if
// there are no pairs or one side is constant. The slices must be equally long.
// Applied to [Ranks] it is Spearman's rank correlation.
func Pearson(x, y []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	return min(max(stat.Correlation(x, y, nil), -1), 1) // rounding may exceed 1
}

// Ranks returns the lengths in ascending order, and the rank of each from 1. Equal
// lengths share their mean rank. Lengths must be at least 0, and there may be at
// most 2^32 of them.
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
