package engine

import (
	"slices"
	"time"
)

// Engine is a model of one LLM serving engine. Every method takes the time, a
// duration since whatever the caller calls the start; a time before that of an
// earlier call counts as that one. It is not safe for concurrent use.
type Engine struct {
	cfg   Config
	index int // in its pool
	kv    *kvCache
	now   time.Duration

	queue   queue
	running []*Request // in order of admission, those out of step not among them
	ticks   tickRing   // the sequences that decode out of step

	stepping bool
	end      time.Duration // of the step under way
	free     time.Duration // when the next step may begin
	stalled  bool          // nothing can be scheduled until something changes

	// holds has requests keep their blocks that go on elsewhere.
	holds   bool
	held    int
	backlog int // tokens to compute of prompts that are here
	stats   Stats
	lost    []Event // preemptions by the step that began last, not told yet
}

// Stats is the state of an engine, or of several together, at one time. Tokens
// are counted since the start.
type Stats struct {
	Waiting, Running int // requests
	KVBlocks, KVUsed int // blocks, and those that requests use

	QueriedTokens   int // prompt tokens looked up in the prefix cache
	HitTokens       int // and taken from it
	PrefillTokens   int // computed of prompts, and again after preemption
	PromptTokens    int // of prompts that have been computed, cached ones included
	GeneratedTokens int
	Preemptions     int
	Steps           int
	Busy            time.Duration // in steps
}

// New returns an idle engine at the time 0 with an empty cache.
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

// Submit hands over a request. The error says why it can never be answered; it
// is then not the engine's. What happens until now has to be known before: see
// Advance.
func (e *Engine) Submit(now time.Duration, r *Request) error {
	if err := e.refuse(r); err != nil {
		return err
	}
	r.until = r.Output
	e.accept(now, r)
	return nil
}

// refuse says why a request can never be answered.
func (e *Engine) refuse(r *Request) error {
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

// Fits says why a prompt and an answer of so many tokens can never be served,
// if so.
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

// accept queues a request that is new, or whose prompt was computed elsewhere.
func (e *Engine) accept(now time.Duration, r *Request) {
	e.wake(now)
	r.state, r.home, r.blocks = waiting, e, len(r.Prompt.blocks)
	if r.generated == 0 {
		hits, _ := e.kv.lookUp(r.reusable())
		e.owe(r, r.known()-hits*e.cfg.BlockSize)
	}
	e.queue.push(r)
}

// reusable are the hashes of blocks that may be cached for all that is known
// of a request.
func (r *Request) reusable() []uint64 {
	return r.Prompt.blocks[:min(len(r.Prompt.blocks), r.known()/r.Prompt.blockSize)]
}

// owe sets what a request adds to the backlog.
func (e *Engine) owe(r *Request, tokens int) {
	e.backlog += tokens - r.owed
	r.owed = tokens
}

// wake notes that there may be something to schedule.
func (e *Engine) wake(now time.Duration) {
	e.now = max(e.now, now)
	e.free = max(e.free, e.now)
	e.stalled = false
}

// Cancel ends a request at once: its place and its blocks are free, and it has
// no more events. The step under way takes as long as it was going to. A
// request that ended before is left alone.
func (e *Engine) Cancel(now time.Duration, r *Request) {
	switch r.state {
	case waiting:
		e.queue.remove(r)
	case running:
		e.running = slices.DeleteFunc(e.running, func(other *Request) bool { return other == r })
	case phased:
		e.ticks.remove(r)
	case holding:
		e.held--
	default:
		return
	}
	e.wake(now)
	e.quit(r)
}

// quit takes a request off the books.
func (e *Engine) quit(r *Request) {
	e.owe(r, 0)
	e.release(r)
	r.state = ended
}

// release gives up the blocks of a request.
func (e *Engine) release(r *Request) {
	e.kv.release(r.chain, r.others)
	r.chain, r.chained, r.others, r.room = nil, 0, 0, 0
}

// letGo frees the blocks of a request that went on elsewhere.
func (e *Engine) letGo(now time.Duration, r *Request) {
	e.held--
	e.wake(now)
	e.quit(r)
}

// Next is the time of the next event, if nothing is submitted or cancelled
// before; ok is false when there is none. If the engine is about to begin a
// step it does: what comes later, even at the same time, waits for the next.
func (e *Engine) Next() (at time.Duration, ok bool) { return e.due(forever) }

const forever = 1<<63 - 1

// due is the time of the next event, for which a step that can begin before
// the given time does.
func (e *Engine) due(before time.Duration) (at time.Duration, ok bool) {
	if len(e.lost) > 0 {
		return e.lost[0].At, true
	}
	if e.free < before && e.canBegin() {
		e.begin()
		if len(e.lost) > 0 {
			return e.lost[0].At, true
		}
	}
	at, ok = e.end, e.stepping
	if tick, any := e.ticks.next(); any && (!ok || tick < at) {
		return tick, true
	}
	return at, ok
}

// canBegin says whether there is a step to begin.
func (e *Engine) canBegin() bool {
	return !e.stepping && !e.stalled && (len(e.running) > 0 || e.queue.len() > 0)
}

// Advance moves the time on and appends what happens until then, in order of
// time. At the given time no step begins: requests submitted at that time are
// still in it. It allocates only to make room for the events.
func (e *Engine) Advance(now time.Duration, events []Event) []Event {
	for {
		at, ok := e.due(now)
		if !ok || at > now {
			e.now = max(e.now, now)
			return events
		}
		events = e.happen(at, events)
	}
}

// happen appends what is due at a time.
func (e *Engine) happen(at time.Duration, events []Event) []Event {
	e.now = at
	switch {
	case len(e.lost) > 0:
		events = append(events, e.lost...)
		e.lost = e.lost[:0]
	case e.stepping && e.end == at:
		events = e.finishStep(events)
	default:
		events = e.tick(events)
	}
	return events
}

// Stats returns the state of the engine.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.Waiting, s.Running = e.queue.len(), len(e.running)+e.ticks.len()
	s.KVBlocks, s.KVUsed = e.cfg.KVBlocks, e.cfg.KVBlocks-e.kv.free
	return s
}

// inFlight is the number of requests that are the engine's, and those that
// hold blocks for another.
func (e *Engine) inFlight() int { return e.queue.len() + len(e.running) + e.ticks.len() + e.held }
