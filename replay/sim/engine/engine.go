package engine

import (
	"slices"
	"time"
)

// Engine models one LLM serving engine. All methods take the time as a duration
// since a start of the caller's choice; a time before that of an earlier call counts
// as that one. An Engine is not safe for concurrent use.
type Engine struct {
	cfg   Config
	index int // in its pool
	kv    *kvCache
	now   time.Duration

	queue   waitQueue
	running []*Request // in order of admission, without phased ones
	phased  phasedQueue

	stepping bool
	stepEnd  time.Duration // of the current step
	free     time.Duration // when the next step may begin
	stalled  bool          // nothing can be scheduled until something changes

	// prefillOnly engines keep the blocks of requests until these are transferred.
	prefillOnly  bool
	transferring int // requests
	backlog      int // prompt tokens to compute
	stats        Stats
	preemptions  []Event // by the step that began last, not reported yet
}

// Stats is the state of one or several engines. Tokens, preemptions, steps and busy
// time are counted since the start.
type Stats struct {
	Waiting, Running int // requests
	KVBlocks, KVUsed int // blocks in all, and used by requests

	QueriedTokens   int // prompt tokens looked up in the prefix cache
	HitTokens       int // of these, found
	PrefillTokens   int // computed for prompts, recomputation after preemption included
	PromptTokens    int // of prompts that have been computed, cached ones included
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

// Submit hands over a request. Call Advance first, so that everything until now has
// happened. An error says why the request can never be served; the engine then does
// not keep it.
func (e *Engine) Submit(now time.Duration, r *Request) error {
	if err := e.check(r); err != nil {
		return err
	}
	r.until = r.Output
	e.accept(now, r)
	return nil
}

// check returns why a request can never be served.
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

// Fits returns an error if a prompt and an answer of so many tokens can never be
// served.
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

// accept queues a request that is new, or whose prompt a prefill engine computed.
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

// setBacklog sets the prompt tokens of a request that are still to be computed.
func (e *Engine) setBacklog(r *Request, tokens int) {
	e.backlog += tokens - r.backlog
	r.backlog = tokens
}

// wake notes that there may be something to schedule.
func (e *Engine) wake(now time.Duration) {
	e.now = max(e.now, now)
	e.free = max(e.free, e.now)
	e.stalled = false
}

// Cancel ends a request at once, frees its blocks and stops its events. The current
// step still takes its time. A request that has ended is left alone.
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

// transferred frees the blocks of a request that a decode engine has now.
func (e *Engine) transferred(now time.Duration, r *Request) {
	e.transferring--
	e.wake(now)
	e.remove(r)
}

// Next returns the time of the next event if nothing is submitted or cancelled
// before, and whether there is one. It may begin a step: a request submitted later,
// even at the same time, waits for the next step.
func (e *Engine) Next() (at time.Duration, ok bool) { return e.next(forever) }

const forever = 1<<63 - 1

// next returns the time of the next event, after beginning a step that can begin
// before the given time.
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

// canBegin reports whether there is a step to begin.
func (e *Engine) canBegin() bool {
	return !e.stepping && !e.stalled && (len(e.running) > 0 || e.queue.len() > 0)
}

// Advance moves the time on and appends the events until then, in order of time. No
// step begins at the given time itself, so requests submitted at that time can be part
// of it. It allocates only to make room for the events.
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

// process appends the events of a time.
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

// inFlight returns the number of requests, those being transferred included.
func (e *Engine) inFlight() int {
	return e.queue.len() + len(e.running) + e.phased.len() + e.transferring
}
