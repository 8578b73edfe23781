package diff

import (
	"math/rand/v2"
	"slices"
)

// stretches is the number of stretches into which a run is cut. Fewer are longer
// and less correlated, but say less about an interval's width.
const stretches = 32

const (
	// minStretches must have a value, for an interval of values, and minEvents a
	// deciding value, such as one beyond a percentile.
	minStretches = 20
	minEvents    = 8
)

// weights say how often each stretch is in a resample.
type weights [stretches]uint8

// once is the resample that is the run itself.
var once = weights(slices.Repeat([]uint8{1}, stretches))

// drawAll draws resamples of as many stretches as a run has, with replacement.
func drawAll(seed uint64, resamples int) []weights {
	random := rand.New(rand.NewPCG(seed, 0x6d6f6f6e74696465))
	draws := make([]weights, resamples)
	for i := range draws {
		for range stretches {
			draws[i][random.IntN(stretches)]++
		}
	}
	return draws
}

// rows are the row numbers of a side in ascending order. They are cut into
// stretches of equally many rows.
type rows []int

// rowsOf are the rows of any of the runs.
func rowsOf(runs []*Run) (all rows) {
	for _, r := range runs {
		all = slices.Grow(all, len(r.requests))
		for i := range r.requests {
			all = append(all, r.requests[i].row)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// stretch is the stretch of the row with an index.
func (r rows) stretch(index int) uint8 { return uint8((stretches*(index+1) - 1) / len(r)) }
