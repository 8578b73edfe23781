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
	checkIn(span{0, maxFirstBlock}, float64(f.FirstBlock), "first_block")
	checkTemplates(f.Templates, f.BlockSize)
	f.Bursts.check()
	for i, key := range f.ClientKeys {
		if !isClientKey(key[0]) || slices.ContainsFunc(f.ClientKeys[:i], func(k clientKey) bool { return k[0] == key[0] }) {
			synth.Fail("client_keys[%d][0]: %q is not a key of clients, or not the only one", i, key[0])
		}
		if key[1] != textValue && key[1] != numberValue {
			synth.Fail("client_keys[%d][1]: %q is neither %q nor %q", i, key[1], textValue, numberValue)
		}
	}
	if f.ReasoningKey != "" && !isReasoningKey(f.ReasoningKey) {
		synth.Fail("reasoning_key: %q is not a key of reasoning", f.ReasoningKey)
	}
	checkIn(span{1, MaxClients}, float64(len(f.Clients)), "number of clients")
	names := make(map[string]bool)
	for i := range f.Clients {
		c := &f.Clients[i]
		if c.Name == "" && len(f.Clients) > 1 || names[c.Name] {
			synth.Fail("clients[%d].name: %q is empty or not the only one", i, c.Name)
		}
		names[c.Name] = true
		if err := c.check(f); err != nil {
			return fmt.Errorf("clients[%d].%w", i, err)
		}
	}
	return nil
}

func (f *clientFile) check(all *modelFile) (err error) {
	defer synth.Catch(&err)
	if n := len(f.Values); n != 0 && n != len(all.ClientKeys) {
		synth.Fail("values: %d, want one for each of %d client_keys, or none", n, len(all.ClientKeys))
	}
	for i, value := range f.Values {
		if len(value) > maxName || all.ClientKeys[i][1] == numberValue && !isNumber(value) {
			synth.Fail("values[%d]: %.40q is not a %s of at most %d bytes", i, value, all.ClientKeys[i][1], maxName)
		}
	}
	checkIn(lengthRange, f.MeanISL, "mean_isl")
	checkIn(lengthRange, f.MeanOSL, "mean_osl")
	checkIn(countRange, float64(f.Requests), "requests")
	checkIn(span{1, float64(f.Requests)}, float64(f.Sessions), "sessions")
	checkIn(span{0, math.MaxInt32}, f.SessionsAhead, "sessions_ahead")
	checkIn(timeRange, f.SettledMs, "settled_ms")
	checkTemplateUse("templates", f.Templates, len(all.Templates))
	checkChoice("starts_with_template", f.Templated, 1, 1)
	checkLengths("isl", f.ISL)
	checkLengths("osl", f.OSL)
	checkJoint("first_turn", f.FirstTurn, startKnown, lengthRange, lengthRange)
	checkJoint("first_turn_templated", f.FirstTurnTemplated, startKnown, lengthRange, lengthRange)
	checkJoint("reasoning", f.Reasoning, reasoningKnown, smallRange)
	if len(f.Reasoning) > 0 && all.ReasoningKey == "" {
		synth.Fail("reasoning: there is no reasoning_key")
	}
	checkChoice("continues", f.Continues, turnKnown, int(relations))
	checkChoice("continues_again", f.ContinuesAgain, turnKnown, int(relations))
	for i, odds := range f.TurnOdds {
		checkIn(span{1. / mostOdds, mostOdds}, odds, "turn_odds[%d]", i)
	}
	values := []span{smallRange, timeRange}
	if all.DelayKinds {
		values = append([]span{smallRange}, values...)
	}
	for _, name := range slices.Sorted(maps.Keys(f.LaterTurns)) {
		if !slices.Contains(relationNames[:], name) {
			synth.Fail("later_turns: %q is none of %q", name, relationNames)
		}
		checkJoint("later_turns."+name, f.LaterTurns[name], turnKnown, values...)
		checkJoint("later_lengths."+name, f.LaterLengths[name], lengthKnown, growthRange, lengthRange)
		if len(f.LaterLengths[name]) != 2 {
			synth.Fail("later_lengths.%s: no values", name)
		}
	}
	f.checkTemplateRegimes()
	checkArrivals(f.Arrivals)
	f.SubAgents.check(len(all.Templates))
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
	// smallRange is that of numbers of categories, and of shares that are all 0 or
	// 1. Bounds are rounded outward; what is drawn is put back into its range.
	smallRange = span{-16, 16}
	countRange = span{minRequests, math.MaxInt32}
	anyRange   = span{-math.MaxFloat64, math.MaxFloat64}
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

func checkTemplates(templates [][3]int, blockSize int) {
	if blockSize == 0 && len(templates) > 0 {
		synth.Fail("templates: there are %d, but block_size is 0", len(templates))
	}
	depth := []int{0}
	for i, t := range templates {
		checkIn(span{0, float64(i)}, float64(t[0]), "templates[%d][0], the parent", i)
		above := depth[t[0]]
		checkIn(span{1, float64(min(maxBlocks, trace.MaxLength/blockSize) - above)}, float64(t[1]), "templates[%d][1], the blocks", i)
		checkIn(span{0, float64(blockSize - 1)}, float64(t[2]), "templates[%d][2], the tail", i)
		depth = append(depth, above+t[1])
	}
}

// checkTemplateUse checks the numbers of sessions that start with templates.
func checkTemplateUse(path string, use [][2]int, templates int) {
	for i, t := range use {
		checkIn(span{1, float64(templates)}, float64(t[0]), "%s[%d][0], the number", path, i)
		checkIn(countRange, float64(t[1]), "%s[%d][1], the sessions", path, i)
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

func checkRenewal(r *renewal) {
	if r.Distribution != gammaGaps && r.Distribution != weibullGaps {
		synth.Fail("arrivals.renewal.distribution: %q is neither %q nor %q", r.Distribution, gammaGaps, weibullGaps)
	}
	checkIn(span{minShape, maxShape}, r.Shape, "arrivals.renewal.shape")
	checkIn(span{1, maxWindows}, float64(len(r.Windows)), "arrivals.renewal.windows: the number")
	total := 0.0
	for i, w := range r.Windows {
		checkWhole(span{0, math.MaxInt32}, w[0], "arrivals.renewal.windows[%d][0], the arrivals", i)
		checkIn(span{1e-3, maxTime}, w[1], "arrivals.renewal.windows[%d][1], the length", i)
		total += w[0]
	}
	checkIn(span{1, math.MaxInt32}, total, "arrivals.renewal.windows: the sum of arrivals")
}

func checkArrivals(a arrivals) {
	ticks, means := timeRange, span{1e-3, 2 * maxTime}
	values := []span{{-16, 1e18}, {-16, 2 * maxAtOnce}}
	if a.ByTick {
		ticks, means = span{1e-3, maxTime}, span{minPerTickInSegment, maxAtOnce}
		values = []span{{-1e4, 1e4}}
	}
	checkIn(ticks, a.TickMs, "arrivals.tick_ms")
	if a.Renewal != nil {
		checkRenewal(a.Renewal)
	}
	checkIn(timeRange, a.MeanGapMs, "arrivals.mean_gap_ms")
	checkIn(timeRange, a.PeriodMs, "arrivals.period_ms")
	checkIn(timeRange, a.LastMs, "arrivals.last_ms")
	checkIn(timeRange, a.GapMs, "arrivals.gap_ms")
	checkIn(timeRange, a.FirstMs, "arrivals.first_ms")
	for i, j := range a.Jitter {
		checkWhole(countRange, j[0], "arrivals.jitter[%d][0], the requests", i)
		checkIn(span{-a.TickMs, a.TickMs}, j[1], "arrivals.jitter[%d][1]", i)
	}
	for i, s := range a.Segments {
		checkWhole(countRange, s[0], "arrivals.segments[%d][0], the requests", i)
		checkWhole(span{0, math.MaxInt32}, s[1], "arrivals.segments[%d][1], the times", i)
		checkIn(means, s[2], "arrivals.segments[%d][2], the mean", i)
	}
	a.Timetable.check()
	checkJoint("arrivals.steps", a.Steps, stepKnown, values...)
	if len(a.Steps) > 0 && len(a.Segments) == 0 {
		synth.Fail("arrivals.segments: none, but there are steps")
	}
}
