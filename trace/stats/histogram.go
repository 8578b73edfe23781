package stats

import "math"

// logSpan is the ratio of the largest to the smallest value above which bins are
// logarithmic.
const logSpan = 20

// Bins divides an axis into bins.
type Bins struct {
	// Edges are the borders of the bins in ascending order, one more than there
	// are bins. A bin includes its lower edge, and the last one its upper edge.
	Edges []float64
	// Log reports whether the bins are equally wide on a logarithmic axis, except
	// for integers as described in [BinsFor]. Values of 0 have a separate first
	// bin, from 0 to the smallest positive value.
	Log bool
}

// BinsFor returns n bins, at least 1, that cover the values of all samples. They
// are logarithmic if no value is negative and the largest is more than 20 times the
// smallest positive one, and linear otherwise. A single value gets one bin of width
// 1 around it; without values there are no bins.
//
// If all values are integers, so are the edges, up to one past the largest value.
// There are then about n bins or fewer.
func BinsFor(n int, ds ...Sample) Bins {
	n = max(n, 1)
	low, high, positive := math.Inf(1), math.Inf(-1), math.Inf(1)
	for _, d := range ds {
		if d.Count == 0 {
			continue
		}
		low, high = min(low, d.Min), max(high, d.Max)
		if i := d.below(math.SmallestNonzeroFloat64); i < d.Count {
			positive = min(positive, d.at(i))
		}
	}
	switch {
	case low > high:
		return Bins{}
	case low == high:
		return Bins{Edges: []float64{low - 0.5, high + 0.5}}
	}
	whole := high < 1<<53 && allWhole(ds)
	switch log := low >= 0 && high > logSpan*positive; {
	case log && whole:
		return Bins{Edges: wholeLogEdges(n, low, positive, high), Log: true}
	case log:
		return Bins{Edges: logEdges(n, low, positive, high), Log: true}
	case whole:
		return Bins{Edges: wholeEdges(n, low, high)}
	}
	edges := make([]float64, n+1)
	for i := range n {
		edges[i] = low + (high-low)*float64(i)/float64(n)
	}
	edges[n] = high
	return Bins{Edges: edges}
}

func logEdges(n int, low, positive, high float64) []float64 {
	var edges []float64
	if low == 0 {
		edges = append(edges, 0)
	}
	edges = append(edges, positive) // exact: exp and log would round it
	for i := 1; i < n; i++ {
		share := float64(i) / float64(n)
		edges = append(edges, math.Exp((1-share)*math.Log(positive)+share*math.Log(high)))
	}
	return append(edges, high)
}

func allWhole(ds []Sample) bool {
	for _, d := range ds {
		for _, v := range d.sorted {
			if v != math.Trunc(v) {
				return false
			}
		}
	}
	return true
}

// wholeEdges returns edges of one integer width.
func wholeEdges(n int, low, high float64) []float64 {
	width := math.Ceil((high - low + 1) / float64(n))
	edges := []float64{low}
	for last := low; last <= high; {
		last += width
		edges = append(edges, last)
	}
	return edges
}

// wholeLogEdges returns integer edges whose width is proportional to the lower
// edge, so that no bin except the last is narrower than the previous one.
func wholeLogEdges(n int, low, positive, high float64) []float64 {
	var edges []float64
	if low == 0 {
		edges = append(edges, 0)
	}
	end := high + 1
	growth := math.Expm1(math.Log(end/positive) / float64(n))
	for edge := positive; edge < end; {
		edges = append(edges, edge)
		width := max(1, math.Round(edge*growth))
		if edge+1.5*width > end { // the rest is too narrow for another bin
			break
		}
		edge += width
	}
	return append(edges, end)
}

// Histogram returns the number of values in each bin. Values outside all bins are
// not counted.
func (d Sample) Histogram(b Bins) []int {
	if len(b.Edges) < 2 {
		return nil
	}
	counts := make([]int, len(b.Edges)-1)
	below := d.below(b.Edges[0])
	for i, edge := range b.Edges[1:] {
		if i == len(counts)-1 {
			edge = math.Nextafter(edge, math.Inf(1)) // the last bin is closed
		}
		up := d.below(edge)
		counts[i] = up - below
		below = up
	}
	return counts
}
