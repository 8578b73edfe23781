package stats

import "math"

// KS returns the two-sample Kolmogorov-Smirnov distance, the largest difference
// between the two cumulative distribution functions: 0 for equal distributions,
// 1 if all values of one are below all of the other. It is NaN unless both have
// values, and takes linear time.
func KS(a, b Sample) float64 {
	if a.Count == 0 || b.Count == 0 {
		return math.NaN()
	}
	largest := 0.0
	steps(a, b, func(difference, _ float64) { largest = max(largest, difference) })
	return largest
}

// Wasserstein returns the Wasserstein-1 (earth mover's) distance, in the unit of
// the values: the area between the cumulative distribution functions. It is NaN
// unless both have values, and takes linear time.
func Wasserstein(a, b Sample) float64 {
	if a.Count == 0 || b.Count == 0 {
		return math.NaN()
	}
	area := 0.0
	steps(a, b, func(difference, width float64) { area += difference * width })
	return area
}

// steps visits the intervals between successive values of a and b together: the
// absolute difference of the two cumulative shares, which is constant there, and
// the interval's width, 0 from the last value on.
func steps(a, b Sample, visit func(difference, width float64)) {
	i, j := 0, 0
	x := min(a.Min, b.Min)
	for {
		for i < len(a.sorted) && a.sorted[i] == x {
			i++
		}
		for j < len(b.sorted) && b.sorted[j] == x {
			j++
		}
		next := math.Inf(1)
		if i < len(a.sorted) {
			next = a.sorted[i]
		}
		if j < len(b.sorted) {
			next = min(next, b.sorted[j])
		}
		difference := math.Abs(float64(a.first(i))/float64(a.Count) - float64(b.first(j))/float64(b.Count))
		if math.IsInf(next, 1) {
			visit(difference, 0)
			return
		}
		visit(difference, next-x)
		x = next
	}
}
