package sessions

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"moontide/trace"
)

// checker makes the parts of a model of what a file says. It keeps the first
// error and goes on with nothing.
type checker struct{ err error }

func (c *checker) failf(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// span is a range of numbers, its ends included.
type span struct{ low, high float64 }

var (
	lengthRange = span{-.5, 2 * trace.MaxLength}
	growthRange = span{-2 * trace.MaxLength, 2 * trace.MaxLength}
	timeRange   = span{-.5, 4 * maxTime}
	shareRange  = span{0, 1}
	countRange  = span{minCell, math.MaxInt32}
	anyRange    = span{-math.MaxFloat64, math.MaxFloat64}
)

// in tells whether a value is in its range; NaN is in none.
func (c *checker) in(r span, x float64, path string, args ...any) bool {
	if x >= r.low && x <= r.high {
		return true
	}
	c.failf("%s: %v is not in %v..%v", fmt.Sprintf(path, args...), x, r.low, r.high)
	return false
}

// whole tells whether a value is a whole number in its range.
func (c *checker) whole(r span, x float64, path string, args ...any) bool {
	if !c.in(r, x, path, args...) {
		return false
	}
	if x != math.Trunc(x) {
		c.failf("%s: %v is not a whole number", fmt.Sprintf(path, args...), x)
		return false
	}
	return true
}

func (c *checker) numbers(f *file) {
	c.in(span{0, trace.MaxLength}, float64(f.BlockSize), "block_size")
	c.in(countRange, float64(f.Requests), "requests")
	c.in(span{1, float64(f.Requests)}, float64(f.Sessions), "sessions")
	c.in(span{0, math.MaxInt32}, f.SessionsAhead, "sessions_ahead")
	c.in(timeRange, f.SettledMs, "settled_ms")
	if f.BlockSize == 0 && len(f.Templates) > 0 {
		c.failf("templates: there are %d, but block_size is 0", len(f.Templates))
	}
}

func (c *checker) extent(path string, f [2]float64) extent {
	c.in(lengthRange, f[0], "%s[0], the low end", path)
	c.in(span{max(f[0], .5), lengthRange.high}, f[1], "%s[1], the high end", path)
	return extent{f[0], f[1], true}
}

func (c *checker) templates(f [][4]int, blockSize int) []template {
	ts := make([]template, 1, len(f)+1)
	for i, t := range f {
		own := len(ts) // the number of this one
		if !c.in(span{0, float64(own - 1)}, float64(t[0]), "templates[%d][0], the parent", i) {
			return nil
		}
		depth := ts[t[0]].depth
		limit := min(maxBlocks, trace.MaxLength/blockSize) - depth
		if !c.in(span{1, float64(limit)}, float64(t[1]), "templates[%d][1], the blocks", i) {
			return nil
		}
		if t[2] != 0 && !c.in(countRange, float64(t[2]), "templates[%d][2], the sessions", i) {
			return nil
		}
		if !c.in(span{0, float64(blockSize - 1)}, float64(t[3]), "templates[%d][3], the tail", i) {
			return nil
		}
		ts = append(ts, template{parent: t[0], blocks: t[1], starts: t[2], tail: t[3], depth: depth + t[1]})
	}
	return ts
}

// partition checks that cuts are one tree over all leaves, in which every cut
// comes before those below it, so that each way through it ends.
func (c *checker) partition(path string, f []fileCut, leaves, known int) partition {
	if len(f)+1 != leaves {
		c.failf("%s: %d cuts do not make %d leaves", path, len(f), leaves)
		return partition{}
	}
	used := make([]bool, len(f)+leaves)
	p := partition{cuts: make([]cut, 0, len(f))}
	for i, x := range f {
		ok := c.whole(span{0, float64(known - 1)}, x[0], "%s.cuts[%d][0], the dimension", path, i) &&
			c.in(anyRange, x[1], "%s.cuts[%d][1]", path, i)
		for side := 2; side < 4 && ok; side++ {
			ok = c.whole(span{float64(-leaves), float64(len(f) - 1)}, x[side], "%s.cuts[%d][%d]", path, i, side)
			if !ok {
				break
			}
			way := int(x[side])
			place := way
			if way < 0 {
				place = len(f) + ^way
			}
			if way >= 0 && way <= i || used[place] {
				c.failf("%s.cuts[%d][%d]: %d leads back", path, i, side, way)
				return partition{}
			}
			used[place] = true
		}
		if !ok {
			return partition{}
		}
		p.cuts = append(p.cuts, cut{dim: int(x[0]), at: x[1], below: int(x[2]), rest: int(x[3])})
	}
	return p
}

// joint checks the distributions of values in given ranges.
func (c *checker) joint(path string, f fileJoint, known int, values ...span) joint {
	if len(f) == 0 {
		return nil
	}
	if len(f) != len(values) {
		c.failf("%s: %d values, want %d", path, len(f), len(values))
		return nil
	}
	j := make(joint, len(f))
	for i, v := range f {
		at := fmt.Sprintf("%s[%d]", path, i)
		j[i].partition = c.partition(at, v.Cuts, len(v.Leaves), known+i)
		for k, leaf := range v.Leaves {
			j[i].leaves = append(j[i].leaves, c.histogram(fmt.Sprintf("%s.leaves[%d]", at, k), leaf, values[i]))
		}
	}
	return j
}

func (c *checker) histogram(path string, f [][]float64, value span) histogram {
	if len(f) == 0 {
		c.failf("%s: no bins", path)
		return histogram{}
	}
	bins := make([]bin, 0, len(f))
	for i, x := range f {
		if len(x) != 3 && len(x) != 5 {
			c.failf("%s[%d]: %d numbers, want 3 or 5", path, i, len(x))
			return histogram{}
		}
		if !c.whole(countRange, x[0], "%s[%d][0], the requests", path, i) ||
			!c.in(span{1e-9, math.MaxInt32}, x[1], "%s[%d][1], the weight", path, i) ||
			!c.in(value, x[2], "%s[%d][2], the low end", path, i) {
			return histogram{}
		}
		b := bin{count: int(x[0]), weight: x[1], low: x[2], high: x[2], mean: x[2]}
		if len(x) == 5 {
			if !c.in(span{b.low, value.high}, x[3], "%s[%d][3], the high end", path, i) ||
				!c.in(span{b.low, x[3]}, x[4], "%s[%d][4], the mean", path, i) {
				return histogram{}
			}
			b.high, b.mean = x[3], x[4]
		}
		bins = append(bins, b)
	}
	return newHistogram(bins)
}

func (c *checker) choice(path string, f fileChoice, known, things int) choice {
	if len(f.Leaves) == 0 {
		return choice{}
	}
	k := choice{partition: c.partition(path, f.Cuts, len(f.Leaves), known)}
	for i, leaf := range f.Leaves {
		if len(leaf) != things+1 {
			c.failf("%s.leaves[%d]: %d numbers, want %d", path, i, len(leaf), things+1)
			return choice{}
		}
		c.whole(countRange, leaf[0], "%s.leaves[%d][0], the requests", path, i)
		sum := 0.0
		for t, share := range leaf[1:] {
			c.in(shareRange, share, "%s.leaves[%d][%d]", path, i, t+1)
			sum += share
		}
		c.in(span{0, 1 + 1e-9}, sum, "%s.leaves[%d], the sum of shares", path, i)
		k.leaves = append(k.leaves, chances{count: int(max(0, min(leaf[0], math.MaxInt32))), shares: slices.Clone(leaf[1:])})
	}
	return k
}

func (c *checker) turns(f map[string]fileJoint) (turns [relations]joint) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		i := slices.Index(relationNames[:], name)
		if i < 0 {
			c.failf("later_turns: %q is none of %q", name, relationNames)
			return
		}
		turns[i] = c.joint("later_turns."+name, f[name], turnKnown, shareRange, timeRange, growthRange, lengthRange)
	}
	return turns
}

func (c *checker) arrivals(f fileArrivals) arrivals {
	a := arrivals{tick: f.TickMs, counted: f.Counted, even: f.EvenMs}
	c.in(timeRange, f.TickMs, "arrivals.tick_ms")
	c.in(timeRange, f.EvenMs, "arrivals.even_ms")
	for i, x := range f.Jitter {
		if c.whole(countRange, x[0], "arrivals.jitter[%d][0], the requests", i) && c.in(span{-f.TickMs, f.TickMs}, x[1], "arrivals.jitter[%d][1]", i) {
			a.jitter = append(a.jitter, bin{count: int(x[0]), weight: x[0], low: x[1], high: x[1], mean: x[1]})
		}
	}
	means := span{1e-3, 2 * maxTime}
	values := []span{{0, 1e18}, {.5, 2 * maxTogether}}
	if a.counted {
		means, values = span{fewestInPiece, maxTogether}, []span{{-1e4, 1e4}}
		c.in(span{1e-3, maxTime}, f.TickMs, "arrivals.tick_ms")
	}
	for i, x := range f.Pieces {
		if c.whole(countRange, x[0], "arrivals.pieces[%d][0], the requests", i) &&
			c.whole(span{1, math.MaxInt32}, x[1], "arrivals.pieces[%d][1], the times", i) &&
			c.in(means, x[2], "arrivals.pieces[%d][2], the mean", i) {
			a.pieces = append(a.pieces, piece{int(x[0]), int(x[1]), x[2]})
		}
	}
	a.steps = c.joint("arrivals.steps", f.Steps, stepKnown, values...)
	if len(a.steps) > 0 && len(a.pieces) == 0 {
		c.failf("arrivals.pieces: none, but there are steps")
	}
	return a
}
