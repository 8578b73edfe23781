package engine

import (
	"slices"
	"time"
)

// rank is a scheduler of an engine, with limits and a KV cache of its own.
type rank struct {
	engine *oneEngine
	cfg    Config
	kv     *kvCache

	queue   fifo[*Request] // waiting; preempted requests first, in order of admission
	running []*Request     // in order of admission, except phased ones
	phased  int            // requests that decode outside the steps
	stalled bool           // nothing to schedule until something changes
	coarse  bool           // reports no Token events

	cost, rise Cost // of its part of the current step, and how much more each step costs

	link         link
	transferring int // requests, which keep their blocks until a decode engine has them
	backlog      int // prompt tokens to compute
	stats        Stats
}

// fits returns an error if a request can never be served.
func (k *rank) fits(prompt, output int) error {
	tooLong := func(limit int, of string) error {
		return &TooLong{Prompt: prompt, Output: output, Limit: limit, Of: of}
	}
	room := k.cfg.KVBlocks * k.cfg.BlockSize
	switch {
	case prompt < 1:
		return ErrNoPrompt
	case output < 1:
		return ErrNoOutput
	case prompt > k.cfg.MaxModelLen || output > k.cfg.MaxModelLen-prompt:
		return tooLong(k.cfg.MaxModelLen, "the model's context")
	case prompt > room || output-1 > room-prompt:
		return tooLong(room, "the KV cache")
	}
	return nil
}

// accept queues a new request, or one with its prompt computed by a prefill
// engine.
func (k *rank) accept(now time.Duration, r *Request) {
	k.engine.settle(now)
	k.wake(now)
	r.state, r.rank, r.blocks, r.reached = waiting, k, k.knownBlocks(r), now
	if r.generated == 0 {
		r.arrived = now
		hits, _ := k.kv.lookUp(k.reusable(r))
		k.setBacklog(r, r.known()-max(hits*k.cfg.BlockSize, r.Prompt.cached))
	}
	k.queue.push(r)
}

// knownBlocks returns the number of blocks of a request that can be looked up.
func (k *rank) knownBlocks(r *Request) int {
	if k.cfg.NoPrefixCache || r.Prompt.cached > 0 {
		return 0
	}
	return len(r.Prompt.blocks)
}

// reusable returns the hashes of the known blocks of a request's tokens.
func (k *rank) reusable(r *Request) []uint64 {
	return r.Prompt.blocks[:min(k.knownBlocks(r), r.known()/r.Prompt.blockSize)]
}

// setBacklog sets the number of prompt tokens of a request left to compute.
func (k *rank) setBacklog(r *Request, tokens int) {
	k.backlog += tokens - r.backlog
	r.backlog = tokens
}

// wake records that there may be work to schedule.
func (k *rank) wake(now time.Duration) {
	k.engine.free = max(k.engine.free, now)
	k.stalled = false
}

func (k *rank) cancel(now time.Duration, r *Request) {
	k.engine.settle(now)
	switch r.state {
	case waiting:
		k.queue.remove(func(other *Request) bool { return other == r })
	case running:
		k.running = slices.DeleteFunc(k.running, func(other *Request) bool { return other == r })
	case phased:
		k.engine.phased.remove(func(t phasedToken) bool { return t.r == r })
		k.phased--
	case transferring:
		k.transferring--
	default:
		return
	}
	k.wake(now)
	k.remove(r)
}

// remove ends a request and frees its blocks.
func (k *rank) remove(r *Request) {
	k.setBacklog(r, 0)
	k.release(r)
	r.state = ended
}

// release frees the blocks of a request.
func (k *rank) release(r *Request) {
	k.kv.release(r.chain, r.others)
	r.chain, r.chained, r.others, r.room = nil, 0, 0, 0
}

// transferred frees the blocks of a request after their transfer to a decode
// engine.
func (k *rank) transferred(now time.Duration, r *Request) {
	k.transferring--
	k.wake(now)
	k.remove(r)
}

func (k *rank) state(now time.Duration) Stats {
	k.engine.settle(now)
	k.engine.changed()
	s := k.stats
	s.Steps, s.Busy = k.engine.steps, k.engine.busy
	s.Waiting, s.Running = k.queue.len(), len(k.running)+k.phased
	s.KVBlocks, s.KVUsed = k.cfg.KVBlocks, k.cfg.KVBlocks-k.kv.free
	return s
}

// hasWork reports whether the rank may have something to compute.
func (k *rank) hasWork() bool {
	return !k.stalled && (len(k.running) > 0 || k.queue.len() > 0)
}

// inFlight returns the number of requests, including those being transferred.
func (k *rank) inFlight() int {
	return k.queue.len() + len(k.running) + k.phased + k.transferring
}
