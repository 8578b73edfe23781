package sessions

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"moontide/synth"
	"moontide/trace"
)

// check returns an error for the first invalid value of a file.
func (f *modelFile) check() (err error) {
	defer synth.Catch(&err)
	checkIn(span{0, trace.MaxLength}, float64(f.BlockSize), "block_size")
	checkIn(countRange, float64(f.Requests), "requests")
	checkIn(span{1, float64(f.Requests)}, float64(f.Sessions), "sessions")
	checkIn(span{0, math.MaxInt32}, f.SessionsAhead, "sessions_ahead")
	checkIn(timeRange, f.SettledMs, "settled_ms")
	checkTemplates(f.Templates, f.BlockSize)
	checkChoice("starts_with_template", f.Templated, 1, 1)
	checkLengths("isl", f.ISL)
	checkLengths("osl", f.OSL)
	checkJoint("first_turn", f.FirstTurn, startKnown, lengthRange, lengthRange)
	checkJoint("first_turn_templated", f.FirstTurnTemplated, startKnown, lengthRange, lengthRange)
	checkChoice("continues", f.Continues, turnKnown, int(relations))
	checkChoice("continues_again", f.ContinuesAgain, turnKnown, int(relations))
	for _, name := range slices.Sorted(maps.Keys(f.LaterTurns)) {
		if !slices.Contains(relationNames[:], name) {
			synth.Fail("later_turns: %q is none of %q", name, relationNames)
		}
		checkJoint("later_turns."+name, f.LaterTurns[name], turnKnown, shareRange, timeRange, growthRange, lengthRange)
	}
	checkArrivals(f.Arrivals)
	if len(f.FirstTurn)+len(f.FirstTurnTemplated) == 0 {
		synth.Fail("first_turn: no values")
	}
	return nil
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

// checkIn rejects a value outside its range. NaN is never in range.
func checkIn(r span, x float64, path string, args ...any) {
	if !(x >= r.low && x <= r.high) {
		synth.Fail("%s: %v is not in %v..%v", fmt.Sprintf(path, args...), x, r.low, r.high)
	}
}

// checkWhole is like checkIn, for whole numbers.
func checkWhole(r span, x float64, path string, args ...any) {
	checkIn(r, x, path, args...)
	if x != math.Trunc(x) {
		synth.Fail("%s: %v is not a whole number", fmt.Sprintf(path, args...), x)
	}
}

func checkLengths(path string, ends [2]float64) {
	checkIn(lengthRange, ends[0], "%s[0], the low end", path)
	checkIn(span{max(ends[0], .5), lengthRange.high}, ends[1], "%s[1], the high end", path)
}

func checkTemplates(templates [][4]int, blockSize int) {
	if blockSize == 0 && len(templates) > 0 {
		synth.Fail("templates: there are %d, but block_size is 0", len(templates))
	}
	depth := []int{0}
	for i, t := range templates {
		checkIn(span{0, float64(i)}, float64(t[0]), "templates[%d][0], the parent", i)
		above := depth[t[0]]
		checkIn(span{1, float64(min(maxBlocks, trace.MaxLength/blockSize) - above)}, float64(t[1]), "templates[%d][1], the blocks", i)
		if t[2] != 0 {
			checkIn(countRange, float64(t[2]), "templates[%d][2], the sessions", i)
		}
		checkIn(span{0, float64(blockSize - 1)}, float64(t[3]), "templates[%d][3], the tail", i)
		depth = append(depth, above+t[1])
	}
}

// checkTree checks that the splits form one tree over all leaves. Every split must
// come before those below it, so that each path ends.
func checkTree(path string, d decisionTree, leaves, known int) {
	if len(d.Splits)+1 != leaves {
		synth.Fail("%s: %d splits do not make %d leaves", path, len(d.Splits), leaves)
	}
	used := make(map[float64]bool)
	for i, s := range d.Splits {
		checkWhole(span{0, float64(known - 1)}, s[0], "%s.splits[%d][0], the dimension", path, i)
		checkIn(anyRange, s[1], "%s.splits[%d][1]", path, i)
		for side := 2; side < 4; side++ {
			to := s[side]
			checkWhole(span{float64(-leaves), float64(leaves - 2)}, to, "%s.splits[%d][%d]", path, i, side)
			if to >= 0 && to <= float64(i) || used[to] {
				synth.Fail("%s.splits[%d][%d]: %v leads back", path, i, side, to)
			}
			used[to] = true
		}
	}
}

// checkJoint checks that the distributions have values in the given ranges.
func checkJoint(path string, j joint, known int, values ...span) {
	if len(j) == 0 {
		return
	}
	if len(j) != len(values) {
		synth.Fail("%s: %d values, want %d", path, len(j), len(values))
	}
	for i := range j {
		at := fmt.Sprintf("%s[%d]", path, i)
		checkTree(at, j[i].decisionTree, len(j[i].Leaves), known+i)
		for k, bins := range j[i].Leaves {
			checkBins(fmt.Sprintf("%s.leaves[%d]", at, k), bins, values[i])
		}
	}
}

func checkBins(path string, bins []bin, value span) {
	if len(bins) == 0 {
		synth.Fail("%s: no bins", path)
	}
	for i, b := range bins {
		if len(b) != 3 && len(b) != 5 {
			synth.Fail("%s[%d]: %d numbers, want 3 or 5", path, i, len(b))
		}
		checkWhole(countRange, b[0], "%s[%d][0], the requests", path, i)
		checkIn(span{1e-9, math.MaxInt32}, b[1], "%s[%d][1], the weight", path, i)
		checkIn(value, b[2], "%s[%d][2], the low end", path, i)
		if len(b) == 5 {
			checkIn(span{b[2], value.high}, b[3], "%s[%d][3], the high end", path, i)
			checkIn(span{b[2], b[3]}, b[4], "%s[%d][4], the mean", path, i)
		}
	}
}

func checkChoice(path string, k choice, known, outcomes int) {
	if len(k.Leaves) == 0 {
		return
	}
	checkTree(path, k.decisionTree, len(k.Leaves), known)
	for i, leaf := range k.Leaves {
		if len(leaf) != outcomes+1 {
			synth.Fail("%s.leaves[%d]: %d numbers, want %d", path, i, len(leaf), outcomes+1)
		}
		checkWhole(countRange, leaf[0], "%s.leaves[%d][0], the requests", path, i)
		for o, share := range leaf[1:] {
			checkIn(shareRange, share, "%s.leaves[%d][%d]", path, i, o+1)
		}
		checkIn(span{0, 1 + 1e-9}, sum(leaf[1:]), "%s.leaves[%d], the sum of shares", path, i)
	}
}

func checkArrivals(a arrivals) {
	ticks, means := timeRange, span{1e-3, 2 * maxTime}
	values := []span{{0, 1e18}, {.5, 2 * maxAtOnce}}
	if a.ByTick {
		ticks, means = span{1e-3, maxTime}, span{minPerTickInSegment, maxAtOnce}
		values = []span{{-1e4, 1e4}}
	}
	checkIn(ticks, a.TickMs, "arrivals.tick_ms")
	checkIn(timeRange, a.MeanGapMs, "arrivals.mean_gap_ms")
	for i, j := range a.Jitter {
		checkWhole(countRange, j[0], "arrivals.jitter[%d][0], the requests", i)
		checkIn(span{-a.TickMs, a.TickMs}, j[1], "arrivals.jitter[%d][1]", i)
	}
	for i, s := range a.Segments {
		checkWhole(countRange, s[0], "arrivals.segments[%d][0], the requests", i)
		checkWhole(span{1, math.MaxInt32}, s[1], "arrivals.segments[%d][1], the times", i)
		checkIn(means, s[2], "arrivals.segments[%d][2], the mean", i)
	}
	checkJoint("arrivals.steps", a.Steps, stepKnown, values...)
	if len(a.Steps) > 0 && len(a.Segments) == 0 {
		synth.Fail("arrivals.segments: none, but there are steps")
	}
}
