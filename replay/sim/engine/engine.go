package engine

import (
	"slices"
	"time"
)

// oneEngine is an engine of a [Cluster], which guarantees that time does not
// decrease.
type oneEngine struct {
	cfg   Config
	pool  *pool
	index int // in pool
	kv    *kvCache

	queue   fifo[*Request] // waiting; preempted requests first, in order of admission
	running []*Request     // in order of admission, except phased ones
	phased  phasedQueue

	stepping bool
	stepEnd  time.Duration // of the current step
	free     time.Duration // when the next step may begin
	rest     Cost          // of the steps so far, below a nanosecond
	coarse   bool          // reports no Token events
	leap     leap          // the steps until stepEnd
	stalled  bool          // nothing to schedule until something changes

	// prefillOnly engines keep the blocks of requests until they are
	// transferred.
	prefillOnly  bool
	link         link
	transferring int // requests
	backlog      int // prompt tokens to compute
	stats        Stats
	preemptions  []Event // of the latest step, not yet reported
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
	Steps           int
	Busy            time.Duration // in steps
}

func newEngine(cfg Config, p *pool, index int) *oneEngine {
	cfg = cfg.WithDefaults()
	return &oneEngine{cfg: cfg, pool: p, index: index, kv: newKVCache(cfg.KVBlocks, cfg.BlockSize)}
}

// fits returns an error if a request can never be served.
func (e *oneEngine) fits(prompt, output int) error {
	tooLong := func(limit int, of string) error {
		return &TooLong{Prompt: prompt, Output: output, Limit: limit, Of: of}
	}
	room := e.cfg.KVBlocks * e.cfg.BlockSize
	switch {
	case prompt < 1:
		return ErrNoPrompt
	case output < 1:
		return ErrNoOutput
	case prompt > e.cfg.MaxModelLen || output > e.cfg.MaxModelLen-prompt:
		return tooLong(e.cfg.MaxModelLen, "the model's context")
	case prompt > room || output-1 > room-prompt:
		return tooLong(room, "the KV cache")
	}
	return nil
}

// accept queues a new request, or one with its prompt computed by a prefill
// engine.
func (e *oneEngine) accept(now time.Duration, r *Request) {
	e.settle(now)
	e.wake(now)
	r.state, r.engine, r.blocks = waiting, e, e.knownBlocks(r)
	if r.generated == 0 {
		r.arrived = now
		hits, _ := e.kv.lookUp(e.reusable(r))
		e.setBacklog(r, r.known()-max(hits*e.cfg.BlockSize, r.Prompt.cached))
	}
	e.queue.push(r)
}

// knownBlocks returns the number of blocks of a request that can be looked up.
func (e *oneEngine) knownBlocks(r *Request) int {
	if e.cfg.NoPrefixCache || r.Prompt.cached > 0 {
		return 0
	}
	return len(r.Prompt.blocks)
}

// reusable returns the hashes of the known blocks of a request's tokens.
func (e *oneEngine) reusable(r *Request) []uint64 {
	return r.Prompt.blocks[:min(e.knownBlocks(r), r.known()/r.Prompt.blockSize)]
}

// setBacklog sets the number of prompt tokens of a request left to compute.
func (e *oneEngine) setBacklog(r *Request, tokens int) {
	e.backlog += tokens - r.backlog
	r.backlog = tokens
}

// wake records that there may be work to schedule.
func (e *oneEngine) wake(now time.Duration) {
	e.free = max(e.free, now)
	e.stalled = false
}

func (e *oneEngine) cancel(now time.Duration, r *Request) {
	e.settle(now)
	switch r.state {
	case waiting:
		e.queue.remove(func(other *Request) bool { return other == r })
	case running:
		e.running = slices.DeleteFunc(e.running, func(other *Request) bool { return other == r })
	case phased:
		e.phased.remove(func(t phasedToken) bool { return t.r == r })
	case transferring:
		e.transferring--
	default:
		return
	}
	e.wake(now)
	e.remove(r)
}

// remove ends a request and frees its blocks.
func (e *oneEngine) remove(r *Request) {
	e.setBacklog(r, 0)
	e.release(r)
	r.state = ended
}

// release frees the blocks of a request.
func (e *oneEngine) release(r *Request) {
	e.kv.release(r.chain, r.others)
	r.chain, r.chained, r.others, r.room = nil, 0, 0, 0
}

// transferred frees the blocks of a request after their transfer to a decode
// engine.
func (e *oneEngine) transferred(now time.Duration, r *Request) {
	e.transferring--
	e.wake(now)
	e.remove(r)
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
	return !e.stepping && !e.stalled && (len(e.running) > 0 || e.queue.len() > 0)
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

func (e *oneEngine) state(now time.Duration) Stats {
	e.settle(now)
	e.changed()
	s := e.stats
	s.Waiting, s.Running = e.queue.len(), len(e.running)+e.phased.len()
	s.KVBlocks, s.KVUsed = e.cfg.KVBlocks, e.cfg.KVBlocks-e.kv.free
	return s
}

// inFlight returns the number of requests, including those being transferred.
func (e *oneEngine) inFlight() int {
	return e.queue.len() + len(e.running) + e.phased.len() + e.transferring
}
