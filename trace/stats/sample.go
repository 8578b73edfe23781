// Package stats computes statistics of samples and draws from probability distributions.
//
// [Of] takes a slice of values and returns a [Sample]: count, mean, deviation
// and any quantile. [OfCounts] takes values with counts, and a [Collector] one value
// after the other. All numbers of up to a million values are exact: they come from the
// values, not from buckets.
//
// A [Distribution] is a probability distribution to draw from, a [Discrete] one
// of counted integers. Random numbers come from [NewStream] and [NewIndexed].
package stats

import (
	"fmt"
	"math"
	"sort"

	"github.com/montanaflynn/stats"
)

// Sample describes a set of values, in the unit of these values. The zero Sample
// has no values and all its numbers are 0, so check Count before showing any.
//
// A Sample never changes and may be shared by goroutines. It keeps its values: 8
// bytes each, or 16 bytes for each distinct value of [OfCounts].
type Sample struct {
	Count int
	Sum   float64
	Mean  float64
	// Std is the population standard deviation (divided by Count, not Count-1).
	Std      float64
	Min, Max float64

	sorted []float64
	// upTo holds, for each of sorted, the number of values up to and including
	// it; nil if each occurs once.
	upTo []int
}

// MarshalJSON writes the numbers of the sample with percentiles, null without values.
func (d Sample) MarshalJSON() ([]byte, error) {
	if d.Count == 0 {
		return []byte("null"), nil
	}
	b := fmt.Appendf(nil, `{"count":%d,"mean":%s,"std":%s,"min":%s,`, d.Count, Plain(d.Mean), Plain(d.Std), Plain(d.Min))
	for _, p := range []float64{1, 5, 10, 25, 50, 75, 90, 95, 99} {
		b = fmt.Appendf(b, `"p%s":%s,`, Plain(p), Plain(d.Quantile(p/100)))
	}
	return fmt.Appendf(b, `"p99_9":%s,"max":%s,"sum":%s}`, Plain(d.Quantile(0.999)), Plain(d.Max), Plain(d.Sum)), nil
}

// Counted is a value that occurs Count times.
type Counted struct {
	Value float64
	Count int
}

// Of describes values, none of which may be NaN. It sorts the slice in place and
// keeps it: do not use it afterwards.
func Of(values []float64) Sample {
	if len(values) == 0 {
		return Sample{}
	}
	sortValues(values)
	// The only possible error is an empty slice.
	sum, _ := stats.Sum(values)
	mean, _ := stats.Mean(values)
	std, _ := stats.StandardDeviationPopulation(values)
	return Sample{
		Count:  len(values),
		Sum:    sum,
		Mean:   mean,
		Std:    std,
		Min:    values[0],
		Max:    values[len(values)-1],
		sorted: values,
	}
}

// OfCounts describes values with counts, none of which may be NaN, in any order.
// A value may occur several times; counts of 0 or less are ignored. It sorts
// the slice in place.
func OfCounts(counted []Counted) Sample {
	sortCounted(counted)
	var d Sample
	for _, c := range counted {
		if c.Count <= 0 {
			continue
		}
		d.Count += c.Count
		d.Sum += c.Value * float64(c.Count)
		if last := len(d.sorted) - 1; last >= 0 && d.sorted[last] == c.Value {
			d.upTo[last] = d.Count
			continue
		}
		d.sorted = append(d.sorted, c.Value)
		d.upTo = append(d.upTo, d.Count)
	}
	if d.Count == 0 {
		return Sample{}
	}
	d.Min, d.Max = d.sorted[0], d.sorted[len(d.sorted)-1]
	d.setMeanAndStd()
	return d
}

// setMeanAndStd computes Mean and Std from the sum and the counted values.
func (d *Sample) setMeanAndStd() {
	d.Mean = d.Sum / float64(d.Count)
	squares := 0.0
	d.each(func(value float64, n int) bool { // called, not ranged over: no allocation
		squares += (value - d.Mean) * (value - d.Mean) * float64(n)
		return true
	})
	d.Std = math.Sqrt(squares / float64(d.Count))
}

// each yields the values in ascending order with their counts; a value may occur
// several times.
func (d *Sample) each(yield func(value float64, n int) bool) {
	for i, value := range d.sorted {
		if !yield(value, d.first(i+1)-d.first(i)) {
			return
		}
	}
}

// Quantile returns the p-quantile by linear interpolation between closest ranks
// (numpy's default, Hyndman and Fan type 7): p = 0.5 is the median, p = 0.99 the
// 99th percentile. p <= 0 is the minimum, p >= 1 the maximum; without values it
// returns 0.
func (d Sample) Quantile(p float64) float64 {
	switch {
	case !(p > 0): // NaN, too
		return d.Min
	case p >= 1:
		return d.Max
	case d.Count == 0:
		return 0
	}
	// This is the rule of stats.Percentile, which copies and sorts in each call.
	rank := p * float64(d.Count-1)
	below := int(rank)
	low, high := d.at(below), d.at(min(below+1, d.Count-1))
	return low + (rank-float64(below))*(high-low)
}

// at returns the value of a rank, 0..Count-1.
func (d Sample) at(rank int) float64 {
	if d.upTo == nil {
		return d.sorted[rank]
	}
	return d.sorted[sort.SearchInts(d.upTo, rank+1)]
}

// first returns the number of values that the first n of sorted represent.
func (d Sample) first(n int) int {
	if d.upTo == nil || n == 0 {
		return n
	}
	return d.upTo[n-1]
}

// below returns the number of values less than x.
func (d Sample) below(x float64) int {
	return d.first(sort.SearchFloat64s(d.sorted, x))
}

// Ranks returns a function that returns the mean rank of a value of the sample, from 1.
// It takes up to 2 MiB, so that the ranks of small integers are found quickly.
func (d Sample) Ranks() func(value float64) float64 {
	const most = 1 << 18
	rank := func(value float64) float64 {
		below := d.below(value)
		return float64(below+1+d.below(math.Nextafter(value, math.Inf(1)))) / 2
	}
	known := make([]float64, int(min(max(d.Max, 0), most))+1)
	return func(value float64) float64 {
		i := int(value)
		if i < 0 || i >= len(known) || float64(i) != value {
			return rank(value)
		}
		if known[i] == 0 {
			known[i] = rank(value)
		}
		return known[i]
	}
}
