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

// beginLeap sets the end of the step just scheduled, or of as many steps as
// follow without a change.
func (e *oneEngine) beginLeap(b batch, steady bool) {
	e.leap = leap{steps: 1, since: e.free, rest: e.rest, first: e.cfg.Costs.of(b)}
	e.leap.rise = times(b.sequences, e.cfg.Costs.ContextToken)
	if e.coarse && steady && b.prefill == 0 && e.leap.first >= minLeapStep && e.leap.first < maxLeapStep && e.leap.rise < maxLeapRise {
		e.leap.steps = e.steadySteps()
	}
	e.stepping, e.stepEnd = true, e.leap.end(e.leap.steps)
	e.rest = e.leap.cost(1) % Nanosecond
	e.stats.Steps++
	e.stats.Busy += e.leap.end(1) - e.leap.since
	e.stats.PrefillTokens += b.prefill
}

// steadySteps returns how many steps the running sequences can decode together
// before one ends, fills a block that later prompts find, or runs out of blocks.
func (e *oneEngine) steadySteps() int {
	steps := maxLeap
	for _, r := range e.running {
		steps = min(steps, r.until-r.generated)
		if r.chained < r.blocks {
			steps = min(steps, (r.chained+1)*e.cfg.BlockSize-1-r.computed)
		}
	}
	for ; steps > 1; steps /= 2 {
		blocks := 0
		for _, r := range e.running {
			blocks += max(0, e.missingBlocks(r, r.computed+steps))
		}
		if blocks <= e.kv.free {
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
	if done > 0 && e.leap.end(done) == now {
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
	before := n - 1
	for _, r := range e.running {
		r.computed += before
		r.generated += before
		e.allocate(r, r.computed+1)
	}
	e.stats.GeneratedTokens += before * len(e.running)
	e.stats.Steps += before
	e.stats.Busy += e.leap.end(n) - e.leap.end(1)
	e.rest = e.leap.cost(n) % Nanosecond
}
