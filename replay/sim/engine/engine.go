package engine

import "time"

// oneEngine is an engine of a [Cluster], which guarantees that time does not
// decrease: ranks that step together, usually one.
type oneEngine struct {
	cfg   Config
	pool  *pool
	index int // in pool
	ranks []*rank

	stepping    bool
	began       time.Duration // the current step, or the latest one
	stepEnd     time.Duration // of the current step
	free        time.Duration // when the next step may begin
	rest        Cost          // of the steps so far, below a nanosecond
	coarse      bool          // reports no Token events, and may leap
	leap        leap          // the steps until stepEnd
	phased      phasedQueue
	preemptions []Event // of the latest step, not yet reported
	steps       int
	busy        time.Duration
}

// Stats is the state of one or more engines. Tokens, preemptions, steps and
// busy time are totals since the start.
type Stats struct {
	Waiting, Running int // requests
	KVBlocks, KVUsed int // total blocks, and blocks used by requests

	Admitted int           // requests that left the queue of their first engine
	Queued   time.Duration // total time in that queue

	QueriedTokens   int // prompt tokens looked up in the prefix cache
	HitTokens       int // prompt tokens found in the prefix cache
	PrefillTokens   int // computed for prompts, including recomputation after preemption
	PromptTokens    int // of computed prompts, including cached tokens
	GeneratedTokens int
	Preemptions     int
	Steps           int           // of the engine, if this is one of its ranks
	Busy            time.Duration // in these steps
}

func newEngine(cfg Config, p *pool, index int) *oneEngine {
	e := &oneEngine{cfg: cfg.WithDefaults(), pool: p, index: index}
	for range e.cfg.Ranks {
		e.ranks = append(e.ranks, &rank{engine: e, cfg: e.cfg, kv: newKVCache(e.cfg.KVBlocks, e.cfg.BlockSize)})
	}
	return e
}

// next returns the time of the next event, after beginning a step if one can
// begin before the given time.
func (e *oneEngine) next(before time.Duration) (at time.Duration, ok bool) {
	if len(e.preemptions) > 0 {
		return e.preemptions[0].At, true
	}
	if e.free < before && e.canBegin() {
		e.beginStep()
		if len(e.preemptions) > 0 {
			return e.preemptions[0].At, true
		}
	}
	at, ok = e.stepEnd, e.stepping
	if token, any := e.phased.next(); any && (!ok || token < at) {
		return token, true
	}
	return at, ok
}

// canBegin reports whether a step can begin.
func (e *oneEngine) canBegin() bool {
	if e.stepping {
		return false
	}
	for _, k := range e.ranks {
		if k.hasWork() {
			return true
		}
	}
	return false
}

// beginStep begins a step of all ranks with work, if any, which takes as long as
// the slowest rank's part, or as many steps as follow without a change.
func (e *oneEngine) beginStep() {
	horizon := e.free
	if e.cfg.AsyncScheduling && e.stepEnd == e.free {
		horizon = e.began
	}
	if !e.scheduleStep(horizon) && horizon < e.free {
		e.scheduleStep(e.free) // no step was scheduled ahead
	}
}

// scheduleStep schedules a step with requests that have arrived until the horizon,
// and reports whether there is anything to compute.
func (e *oneEngine) scheduleStep(horizon time.Duration) bool {
	e.leap = leap{steps: 1, since: e.free, rest: e.rest}
	steady := e.coarse
	for _, k := range e.ranks {
		if !k.hasWork() {
			continue
		}
		b, same := k.plan(horizon)
		steady = steady && same && b.prefill == 0
		if b == (batch{}) {
			continue
		}
		k.cost, k.rise = e.cfg.Costs.of(b), times(b.sequences, e.cfg.Costs.ContextToken)
		if !e.stepping || k.cost > e.leap.first || k.cost == e.leap.first && k.rise > e.leap.rise {
			e.leap.first, e.leap.rise = k.cost, k.rise
		}
		e.stepping = true
	}
	if !e.stepping {
		return false
	}
	e.began = e.free
	if steady {
		e.leap.steps = e.steadySteps()
	}
	e.stepEnd = e.leap.end(e.leap.steps)
	e.rest = e.leap.cost(1) % Nanosecond
	e.steps++
	e.busy += e.leap.end(1) - e.leap.since
	return true
}

// process appends the events at a given time.
func (e *oneEngine) process(at time.Duration, events []Event) []Event {
	switch {
	case len(e.preemptions) > 0:
		events = append(events, e.preemptions...)
		e.preemptions = e.preemptions[:0]
		return events
	case e.stepping && e.stepEnd == at:
		return e.finishStep(events)
	}
	return e.phasedToken(events)
}

// finishStep ends the current step.
func (e *oneEngine) finishStep(events []Event) []Event {
	if e.leap.steps > 1 {
		e.endLeap(e.leap.steps)
	}
	e.stepping, e.free = false, max(e.free, e.stepEnd) // later after a late call of Submit or Cancel
	for _, k := range e.ranks {
		events = k.finish(e.stepEnd, events)
	}
	return events
}
