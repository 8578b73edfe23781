package engine

import (
	"slices"
	"time"
)

// Engine models one LLM serving engine. All methods take the time as a duration
// since a start chosen by the caller; times before that of an earlier call are
// treated as that time. An Engine is not safe for concurrent use.
type Engine struct {
	cfg   Config
	index int // in its pool
	kv    *kvCache
	now   time.Duration

	queue   waitQueue
	running []*Request // in order of admission, except phased ones
	phased  phasedQueue

	stepping bool
	stepEnd  time.Duration // of the current step
	free     time.Duration // when the next step may begin
	stalled  bool          // nothing to schedule until something changes

	// prefillOnly engines keep the blocks of requests until they are
	// transferred.
	prefillOnly  bool
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

	QueriedTokens   int // prompt tokens looked up in the prefix cache
	HitTokens       int // prompt tokens found in the prefix cache
	PrefillTokens   int // computed for prompts, including recomputation after preemption
	PromptTokens    int // of computed prompts, including cached tokens
	GeneratedTokens int
	Preemptions     int
	Steps           int
	Busy            time.Duration // in steps
}

// New returns an idle engine at time 0 with an empty cache.
func New(cfg Config) (*Engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return newEngine(cfg), nil
}

func newEngine(cfg Config) *Engine {
	cfg = cfg.WithDefaults()
	return &Engine{cfg: cfg, kv: newKVCache(cfg.KVBlocks, cfg.BlockSize)}
}

// Submit adds a request. Call Advance first to process everything until now. An
// error describes why the request can never be served; the request is then not
// added.
func (e *Engine) Submit(now time.Duration, r *Request) error {
	if err := e.check(r); err != nil {
		return err
	}
	r.until = r.Output
	e.accept(now, r)
	return nil
}

// check returns an error if a request can never be served.
func (e *Engine) check(r *Request) error {
	switch {
	case r.state != idle:
		return ErrSubmitted
	case r.Prompt == nil:
		return ErrNoPrompt
	case r.Prompt.blockSize != e.cfg.BlockSize:
		return ErrBlockSize
	}
	return e.Fits(r.Prompt.tokens, r.Output)
}

// Fits returns an error if a request with this many prompt and output tokens
// can never be served.
func (e *Engine) Fits(prompt, output int) error {
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
func (e *Engine) accept(now time.Duration, r *Request) {
	e.wake(now)
	r.state, r.engine, r.blocks = waiting, e, len(r.Prompt.blocks)
	if r.generated == 0 {
		hits, _ := e.kv.lookUp(r.reusable())
		e.setBacklog(r, r.known()-hits*e.cfg.BlockSize)
	}
	e.queue.push(r)
}

// reusable returns the hashes of the known blocks of a request.
func (r *Request) reusable() []uint64 {
	return r.Prompt.blocks[:min(len(r.Prompt.blocks), r.known()/r.Prompt.blockSize)]
}

// setBacklog sets the number of prompt tokens of a request left to compute.
func (e *Engine) setBacklog(r *Request, tokens int) {
	e.backlog += tokens - r.backlog
	r.backlog = tokens
}

// wake records that there may be work to schedule.
func (e *Engine) wake(now time.Duration) {
	e.now = max(e.now, now)
	e.free = max(e.free, e.now)
	e.stalled = false
}

// Cancel ends a request immediately, frees its blocks and stops its events. The
// current step still takes its full time. Cancelling a request that has ended
// has no effect.
func (e *Engine) Cancel(now time.Duration, r *Request) {
	switch r.state {
	case waiting:
		e.queue.remove(r)
	case running:
		e.running = slices.DeleteFunc(e.running, func(other *Request) bool { return other == r })
	case phased:
		e.phased.remove(r)
	case transferring:
		e.transferring--
	default:
		return
	}
	e.wake(now)
	e.remove(r)
}

// remove ends a request and frees its blocks.
func (e *Engine) remove(r *Request) {
	e.setBacklog(r, 0)
	e.release(r)
	r.state = ended
}

// release frees the blocks of a request.
func (e *Engine) release(r *Request) {
	e.kv.release(r.chain, r.others)
	r.chain, r.chained, r.others, r.room = nil, 0, 0, 0
}

// transferred frees the blocks of a request after their transfer to a decode
// engine.
func (e *Engine) transferred(now time.Duration, r *Request) {
	e.transferring--
	e.wake(now)
	e.remove(r)
}

// Next returns the time of the next event, assuming no further calls of Submit
// or Cancel, and whether there is one. It may begin a step: a request submitted
// later, even at the same time, waits for the next step.
func (e *Engine) Next() (at time.Duration, ok bool) { return e.next(forever) }

const forever = 1<<63 - 1

// next returns the time of the next event, after beginning a step if one can
// begin before the given time.
func (e *Engine) next(before time.Duration) (at time.Duration, ok bool) {
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
func (e *Engine) canBegin() bool {
	return !e.stepping && !e.stalled && (len(e.running) > 0 || e.queue.len() > 0)
}

// Advance advances the time and appends the events until then in order of time.
// No step begins at exactly the given time, so that requests submitted at that
// time can be part of it. It allocates only to grow events.
func (e *Engine) Advance(now time.Duration, events []Event) []Event {
	for {
		at, ok := e.next(now)
		if !ok || at > now {
			e.now = max(e.now, now)
			return events
		}
		events = e.process(at, events)
	}
}

// process appends the events at a given time.
func (e *Engine) process(at time.Duration, events []Event) []Event {
	e.now = at
	switch {
	case len(e.preemptions) > 0:
		events = append(events, e.preemptions...)
		e.preemptions = e.preemptions[:0]
	case e.stepping && e.stepEnd == at:
		events = e.finishStep(events)
	default:
		events = e.phasedToken(events)
	}
	return events
}

// Stats returns the state of the engine.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.Waiting, s.Running = e.queue.len(), len(e.running)+e.phased.len()
	s.KVBlocks, s.KVUsed = e.cfg.KVBlocks, e.cfg.KVBlocks-e.kv.free
	return s
}

// inFlight returns the number of requests, including those being transferred.
func (e *Engine) inFlight() int {
	return e.queue.len() + len(e.running) + e.phased.len() + e.transferring
}
