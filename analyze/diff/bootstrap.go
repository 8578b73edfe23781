package diff

import (
	"math/rand/v2"
	"slices"
)

// stretches is the number of stretches of a run. Fewer are less correlated, but
// estimate the interval's width less well.
const stretches = 32

const (
	// An interval needs at least minStretches stretches with a value, and minEvents
	// with a deciding value, such as one beyond a percentile.
	minStretches = 20
	minEvents    = 8
)

// weights holds how often each stretch occurs in a resample.
type weights [stretches]uint8

var once = weights(slices.Repeat([]uint8{1}, stretches))

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

// rows holds the row numbers of a side in order, cut into stretches of equal size.
type rows []int

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

func (r rows) stretch(index int) uint8 { return uint8((stretches*(index+1) - 1) / len(r)) }
