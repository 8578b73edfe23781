package engine

import (
	"sort"
	"time"
)

// leap is a run of steps of a coarse engine in which the same sequences decode
// and none ends. Contexts grow by a token per sequence and step, so the steps'
// costs are an arithmetic series and the engine computes them at once. A request
// that arrives or leaves ends the leap with the step under way.
type leap struct {
	steps       int // including the first, which is scheduled like any other
	since       time.Duration
	rest        Cost // of the engine, at since
	first, rise Cost // the first step's cost, and how much more each step costs
}

// cost returns the cost of the first n steps, with the rest from before.
func (l *leap) cost(n int) Cost {
	return l.rest + Cost(n)*l.first + Cost(n*(n-1)/2)*l.rise
}

// end returns the end of step n, from 1.
func (l *leap) end(n int) time.Duration { return l.since + l.cost(n).Duration() }

// Leaps have a limited number of steps, and their steps limited costs: at least
// a nanosecond, so that no two end at the same time.
const (
	maxLeap     = 1 << 12
	minLeapStep = Nanosecond
	maxLeapStep = 100 * Second
	maxLeapRise = Second / 10
)

// steadySteps returns how many steps the running sequences can decode together
// before one ends, fills a block that later prompts find, or runs out of blocks,
// or another rank becomes the slowest.
func (e *oneEngine) steadySteps() int {
	slowest := &e.leap
	if slowest.first < minLeapStep || slowest.first >= maxLeapStep || slowest.rise >= maxLeapRise {
		return 1
	}
	steps := maxLeap
	for _, k := range e.ranks {
		if len(k.running) == 0 {
			continue
		}
		if k.rise > slowest.rise {
			steps = min(steps, int((slowest.first-k.cost)/(k.rise-slowest.rise))+1)
		}
		steps = k.steadySteps(steps)
	}
	return steps
}

// steadySteps is for one rank, and at most the given number.
func (k *rank) steadySteps(steps int) int {
	for _, r := range k.running {
		steps = min(steps, r.until-r.generated)
		if r.chained < r.blocks {
			steps = min(steps, (r.chained+1)*k.cfg.BlockSize-1-r.computed)
		}
	}
	for ; steps > 1; steps /= 2 {
		blocks := 0
		for _, r := range k.running {
			blocks += max(0, k.missingBlocks(r, r.computed+steps))
		}
		if blocks <= k.kv.free {
			return steps
		}
	}
	return 1
}

// settle ends a leap with the step under way at a time, because something is
// about to change.
func (e *oneEngine) settle(now time.Duration) {
	if !e.stepping || e.leap.steps == 1 {
		return
	}
	done := sort.Search(e.leap.steps-1, func(i int) bool { return e.leap.end(i+1) > now })
	if done > 0 && e.leap.end(done) == now && e.pool.begun < now {
		e.endLeap(done)
		e.finishStep(nil) // no sequence ends
		return
	}
	e.endLeap(done + 1)
}

// endLeap does the steps of a leap before step n, and makes n the current one.
func (e *oneEngine) endLeap(n int) {
	e.stepEnd = e.leap.end(n)
	e.leap.steps = 1
	if n == 1 {
		return
	}
	e.began = e.leap.end(n - 1)
	before := n - 1
	for _, k := range e.ranks {
		for _, r := range k.running {
			r.computed += before
			r.generated += before
			k.allocate(r, r.computed+1)
		}
		k.stats.GeneratedTokens += before * len(k.running)
	}
	e.steps += before
	e.busy += e.leap.end(n) - e.leap.end(1)
	e.rest = e.leap.cost(n) % Nanosecond
}
