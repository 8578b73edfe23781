package fidelity

import "math"

// Novelty tells how much of a drawn trace is a copy of its source.
type Novelty struct {
	// Rows is the most successive requests that have the same ISL, OSL and time since
	// the arrival before as successive requests of the source. MaxRows is the largest
	// number that passes: 5, or three times that between the source's halves, for a
	// periodic source repeats itself.
	Rows, MaxRows int
}

// Pass reports whether the drawn trace is no copy.
func (n *Novelty) Pass() bool { return n.Rows <= n.MaxRows }

func noveltyOf(source, drawn *Trace) Novelty {
	own := source.rowKeys()
	half := len(own) / 2
	return Novelty{Rows: longestCommonRun(own, drawn.rowKeys()), MaxRows: max(5, 3*longestCommonRun(own[:half], own[half:]))}
}

// rowKey is what a copied row has in common with its original.
type rowKey struct {
	isl, osl int
	since    float64 // µs since the arrival before
}

func (t *Trace) rowKeys() []rowKey {
	keys := make([]rowKey, len(t.rows))
	for i, r := range t.rows {
		keys[i] = rowKey{r.isl, r.osl, -1}
		if i > 0 {
			keys[i].since = math.Round(1000 * (r.at - t.rows[i-1].at))
		}
	}
	return keys
}

// maxPlaces is how many places of a row are remembered: a run of equal rows is found up
// to that length.
const maxPlaces = 100

// longestCommonRun returns the length of the longest sequence that is in both.
func longestCommonRun(a, b []rowKey) (longest int) {
	places := map[rowKey][]int{}
	for i, key := range a {
		if len(places[key]) < maxPlaces {
			places[key] = append(places[key], i)
		}
	}
	before := map[int]int{} // length of the run that ends at a place of a
	for _, key := range b {
		now := make(map[int]int, len(places[key]))
		for _, i := range places[key] {
			now[i] = before[i-1] + 1
			longest = max(longest, now[i])
		}
		before = now
	}
	return longest
}
