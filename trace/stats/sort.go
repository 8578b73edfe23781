package stats

import (
	"cmp"
	"math"
	"slices"
)

// minRadix is the number of values above which a radix sort is faster.
const minRadix = 256

// sortValues sorts values, none of which is NaN.
func sortValues(values []float64) {
	if slices.IsSorted(values) {
		return
	}
	if len(values) < minRadix {
		slices.Sort(values)
		return
	}
	keys := make([]uint64, len(values))
	for i, v := range values {
		keys[i] = key(v)
	}
	for i, k := range radixSorted(keys) {
		values[i] = value(k)
	}
}

// sortCounted sorts by value.
func sortCounted(counted []Counted) {
	slices.SortFunc(counted, func(a, b Counted) int { return cmp.Compare(a.Value, b.Value) })
}

// key maps floats to integers of the same order, and value maps them back.
func key(v float64) uint64 {
	bits := math.Float64bits(v)
	if bits>>63 != 0 {
		return ^bits
	}
	return bits | 1<<63
}

func value(key uint64) float64 {
	if key>>63 == 0 {
		return math.Float64frombits(^key)
	}
	return math.Float64frombits(key &^ (1 << 63))
}

// radixSorted sorts, 11 bits per pass, without the bits that are equal in all keys. It
// overwrites keys.
func radixSorted(keys []uint64) []uint64 {
	const digits = 1 << 11
	all, some := ^uint64(0), uint64(0)
	for _, k := range keys {
		all &= k
		some |= k
	}
	now, to := keys, make([]uint64, len(keys))
	for shift := 0; shift < 64; shift += 11 {
		if (all^some)>>shift%digits == 0 {
			continue
		}
		var next [digits]int // where the next key of each digit goes
		for _, k := range now {
			next[k>>shift%digits]++
		}
		sum := 0
		for digit, n := range next {
			next[digit] = sum
			sum += n
		}
		for _, k := range now {
			place := &next[k>>shift%digits]
			to[*place] = k
			*place++
		}
		now, to = to, now
	}
	return now
}
