package stats

import "math"

// logSpan is how far values have to spread, largest over smallest, before their
// bins grow in proportion: on a linear axis most of them would be one column.
const logSpan = 20

// Bins divides an axis into columns.
type Bins struct {
	// Edges are the borders of the columns, one more than there are columns,
	// rising. A column holds the values from its lower edge up to, and except in
	// the last column without, its upper edge.
	Edges []float64
	// Log says that the columns are equally wide on a logarithmic axis, but for
	// what [BinsFor] says of whole numbers. Where
	// values of 0 come with it, one more column from 0 to the smallest positive
	// value stands in front of the others for them.
	Log bool
}

// BinsFor returns n columns, at least 1, that cover the values of all ds, so
// that their histograms can be laid over each other. They are logarithmic where
// no value is negative and the largest is more than 20 times the smallest positive
// one, else linear. A range of one single value is one column of width 1 around
// it; no values have no columns.
//
// Where all values are whole numbers, so are the edges, up to one past the largest
// value: columns narrower than 1 would be empty but for a few, and of columns
// whose width is no whole number some hold one value more than their neighbours.
// They are then as many as this allows, about n or fewer.
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
	edges = append(edges, positive) // a power may miss it, and high, by the last digit
	for i := 1; i < n; i++ {
		share := float64(i) / float64(n)
		edges = append(edges, math.Exp((1-share)*math.Log(positive)+share*math.Log(high)))
	}
	return append(edges, high)
}

func allWhole(ds []Sample) bool {
	for _, d := range ds {
		if d.tallied != nil {
			return d.tallied.unit == 1
		}
		for _, v := range d.sorted {
			if v != math.Trunc(v) {
				return false
			}
		}
	}
	return true
}

// wholeEdges are those of columns of one whole width.
func wholeEdges(n int, low, high float64) []float64 {
	width := math.Ceil((high - low + 1) / float64(n))
	edges := []float64{low}
	for last := low; last <= high; {
		last += width
		edges = append(edges, last)
	}
	return edges
}

// wholeLogEdges are those of columns whose width is in proportion to their lower
// edge, in whole numbers, so that none is narrower than one before it, but for
// the last.
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
		if edge+1.5*width > end { // what is left is no column of its own
			break
		}
		edge += width
	}
	return append(edges, end)
}

// Histogram counts the values in each column. Values outside all columns count
// nowhere.
func (d Sample) Histogram(b Bins) []int {
	if len(b.Edges) < 2 {
		return nil
	}
	counts := make([]int, len(b.Edges)-1)
	below := d.below(b.Edges[0])
	for i, edge := range b.Edges[1:] {
		if i == len(counts)-1 {
			edge = math.Nextafter(edge, math.Inf(1)) // the last column is closed
		}
		up := d.below(edge)
		counts[i] = up - below
		below = up
	}
	return counts
}
