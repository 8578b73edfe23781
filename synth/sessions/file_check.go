package sessions

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"moontide/trace"
)

// check returns an error for the first invalid value of a file.
func (f *modelFile) check() error {
	c := checker{}
	c.in(span{0, trace.MaxLength}, float64(f.BlockSize), "block_size")
	c.in(countRange, float64(f.Requests), "requests")
	c.in(span{1, float64(f.Requests)}, float64(f.Sessions), "sessions")
	c.in(span{0, math.MaxInt32}, f.SessionsAhead, "sessions_ahead")
	c.in(timeRange, f.SettledMs, "settled_ms")
	c.templates(f.Templates, f.BlockSize)
	c.choice("starts_with_template", f.Templated, 1, 1)
	c.lengthEnds("isl", f.ISL)
	c.lengthEnds("osl", f.OSL)
	c.joint("first_turn", f.FirstTurn, startKnown, lengthRange, lengthRange)
	c.joint("first_turn_templated", f.FirstTurnTemplated, startKnown, lengthRange, lengthRange)
	c.choice("continues", f.Continues, turnKnown, int(relations))
	c.choice("continues_again", f.ContinuesAgain, turnKnown, int(relations))
	for _, name := range slices.Sorted(maps.Keys(f.LaterTurns)) {
		if !slices.Contains(relationNames[:], name) {
			c.failf("later_turns: %q is none of %q", name, relationNames)
		}
		c.joint("later_turns."+name, f.LaterTurns[name], turnKnown, shareRange, timeRange, growthRange, lengthRange)
	}
	c.arrivals(f.Arrivals)
	if c.err == nil && len(f.FirstTurn)+len(f.FirstTurnTemplated) == 0 {
		return errors.New("first_turn: no values")
	}
	return c.err
}

// checker keeps the first error.
type checker struct{ err error }

func (c *checker) failf(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// span is a range of numbers, including both ends.
type span struct{ low, high float64 }

var (
	lengthRange = span{-.5, 2 * trace.MaxLength}
	growthRange = span{-2 * trace.MaxLength, 2 * trace.MaxLength}
	timeRange   = span{-.5, 4 * maxTime}
	shareRange  = span{0, 1}
	countRange  = span{minRequests, math.MaxInt32}
	anyRange    = span{-math.MaxFloat64, math.MaxFloat64}
)

// in reports whether there is no error so far and a value is in its range. NaN
// is never in range.
func (c *checker) in(r span, x float64, path string, args ...any) bool {
	if !(x >= r.low && x <= r.high) {
		c.failf("%s: %v is not in %v..%v", fmt.Sprintf(path, args...), x, r.low, r.high)
	}
	return c.err == nil
}

// whole is like in, for whole numbers.
func (c *checker) whole(r span, x float64, path string, args ...any) bool {
	if c.in(r, x, path, args...) && x != math.Trunc(x) {
		c.failf("%s: %v is not a whole number", fmt.Sprintf(path, args...), x)
	}
	return c.err == nil
}

func (c *checker) lengthEnds(path string, ends [2]float64) {
	c.in(lengthRange, ends[0], "%s[0], the low end", path)
	c.in(span{max(ends[0], .5), lengthRange.high}, ends[1], "%s[1], the high end", path)
}

func (c *checker) templates(templates [][4]int, blockSize int) {
	if blockSize == 0 && len(templates) > 0 {
		c.failf("templates: there are %d, but block_size is 0", len(templates))
	}
	depth := []int{0}
	for i, t := range templates {
		if !c.in(span{0, float64(i)}, float64(t[0]), "templates[%d][0], the parent", i) {
			return
		}
		above := depth[t[0]]
		c.in(span{1, float64(min(maxBlocks, trace.MaxLength/blockSize) - above)}, float64(t[1]), "templates[%d][1], the blocks", i)
		if t[2] != 0 {
			c.in(countRange, float64(t[2]), "templates[%d][2], the sessions", i)
		}
		c.in(span{0, float64(blockSize - 1)}, float64(t[3]), "templates[%d][3], the tail", i)
		depth = append(depth, above+t[1])
	}
}

// tree checks that the splits form one tree over all leaves. Every split must
// come before those below it, so that each path ends.
func (c *checker) tree(path string, d decisionTree, leaves, known int) {
	if len(d.Splits)+1 != leaves {
		c.failf("%s: %d splits do not make %d leaves", path, len(d.Splits), leaves)
		return
	}
	used := make(map[float64]bool)
	for i, s := range d.Splits {
		c.whole(span{0, float64(known - 1)}, s[0], "%s.splits[%d][0], the dimension", path, i)
		c.in(anyRange, s[1], "%s.splits[%d][1]", path, i)
		for side := 2; side < 4; side++ {
			to := s[side]
			if !c.whole(span{float64(-leaves), float64(leaves - 2)}, to, "%s.splits[%d][%d]", path, i, side) {
				return
			}
			if to >= 0 && to <= float64(i) || used[to] {
				c.failf("%s.splits[%d][%d]: %v leads back", path, i, side, to)
			}
			used[to] = true
		}
	}
}

// joint checks that the distributions have values in the given ranges.
func (c *checker) joint(path string, j joint, known int, values ...span) {
	if len(j) == 0 {
		return
	}
	if len(j) != len(values) {
		c.failf("%s: %d values, want %d", path, len(j), len(values))
		return
	}
	for i := range j {
		at := fmt.Sprintf("%s[%d]", path, i)
		c.tree(at, j[i].decisionTree, len(j[i].Leaves), known+i)
		for k, bins := range j[i].Leaves {
			c.bins(fmt.Sprintf("%s.leaves[%d]", at, k), bins, values[i])
		}
	}
}

func (c *checker) bins(path string, bins []bin, value span) {
	if len(bins) == 0 {
		c.failf("%s: no bins", path)
	}
	for i, b := range bins {
		if len(b) != 3 && len(b) != 5 {
			c.failf("%s[%d]: %d numbers, want 3 or 5", path, i, len(b))
			return
		}
		c.whole(countRange, b[0], "%s[%d][0], the requests", path, i)
		c.in(span{1e-9, math.MaxInt32}, b[1], "%s[%d][1], the weight", path, i)
		c.in(value, b[2], "%s[%d][2], the low end", path, i)
		if len(b) == 5 {
			c.in(span{b[2], value.high}, b[3], "%s[%d][3], the high end", path, i)
			c.in(span{b[2], b[3]}, b[4], "%s[%d][4], the mean", path, i)
		}
	}
}

func (c *checker) choice(path string, k choice, known, outcomes int) {
	if len(k.Leaves) == 0 {
		return
	}
	c.tree(path, k.decisionTree, len(k.Leaves), known)
	for i, leaf := range k.Leaves {
		if len(leaf) != outcomes+1 {
			c.failf("%s.leaves[%d]: %d numbers, want %d", path, i, len(leaf), outcomes+1)
			return
		}
		c.whole(countRange, leaf[0], "%s.leaves[%d][0], the requests", path, i)
		for o, share := range leaf[1:] {
			c.in(shareRange, share, "%s.leaves[%d][%d]", path, i, o+1)
		}
		c.in(span{0, 1 + 1e-9}, sum(leaf[1:]), "%s.leaves[%d], the sum of shares", path, i)
	}
}

func (c *checker) arrivals(a arrivals) {
	ticks, means := timeRange, span{1e-3, 2 * maxTime}
	values := []span{{0, 1e18}, {.5, 2 * maxAtOnce}}
	if a.ByTick {
		ticks, means = span{1e-3, maxTime}, span{minPerTickInSegment, maxAtOnce}
		values = []span{{-1e4, 1e4}}
	}
	c.in(ticks, a.TickMs, "arrivals.tick_ms")
	c.in(timeRange, a.MeanGapMs, "arrivals.mean_gap_ms")
	for i, j := range a.Jitter {
		c.whole(countRange, j[0], "arrivals.jitter[%d][0], the requests", i)
		c.in(span{-a.TickMs, a.TickMs}, j[1], "arrivals.jitter[%d][1]", i)
	}
	for i, s := range a.Segments {
		c.whole(countRange, s[0], "arrivals.segments[%d][0], the requests", i)
		c.whole(span{1, math.MaxInt32}, s[1], "arrivals.segments[%d][1], the times", i)
		c.in(means, s[2], "arrivals.segments[%d][2], the mean", i)
	}
	c.joint("arrivals.steps", a.Steps, stepKnown, values...)
	if len(a.Steps) > 0 && len(a.Segments) == 0 {
		c.failf("arrivals.segments: none, but there are steps")
	}
}
