package diff

import (
	"math/rand/v2"
	"slices"
)

// stretches is the number of stretches into which a run is cut. Few are long,
// and so less alike than neighbouring requests are; but what few of them tell
// of an interval's width is rough.
const stretches = 32

const (
	// fewestStretches must have a value, for an interval of values, and
	// fewestEvents one of those that decide, such as what is beyond a percentile.
	fewestStretches = 20
	fewestEvents    = 8
)

// weights say how often each stretch is in a resample.
type weights [stretches]uint8

// once is the resample that is the run itself.
var once = func() (w weights) {
	for i := range w {
		w[i] = 1
	}
	return w
}()

// drawAll draws resamples: as many stretches as there are, each any of them.
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

// cut is where the stretches of a run begin, as row numbers, but for the first.
type cut [stretches - 1]int

// cutRows cuts the rows that any of the runs has into stretches of as many.
func cutRows(runs []*Run) *cut {
	var rows []int
	for _, r := range runs {
		rows = slices.Grow(rows, len(r.requests))
		for i := range r.requests {
			rows = append(rows, r.requests[i].row)
		}
	}
	slices.Sort(rows)
	rows = slices.Compact(rows)
	var c cut
	for i := range c {
		if len(rows) > 0 {
			c[i] = rows[(i+1)*len(rows)/stretches]
		}
	}
	return &c
}

// of is the stretch in which a row lies.
func (c *cut) of(row int) uint8 {
	i, here := slices.BinarySearch(c[:], row)
	for here && i < len(c) && c[i] == row { // a stretch without a row begins where the next does
		i++
	}
	return uint8(i)
}
