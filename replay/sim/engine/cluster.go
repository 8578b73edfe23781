package engine

import (
	"slices"
	"time"
)

// Cluster is a running deployment, often of one engine. Make it with
// [Deployment.New]. All methods take the time as a duration since a start chosen
// by the caller; times before that of an earlier call are treated as that time. A
// Cluster is not safe for concurrent use.
type Cluster struct {
	front     *pool // accepts requests
	decode    *pool // nil: the front computes answers too
	transfer  Transfer
	transfers fifo[transferUnderWay] // ordered by end
	blockSize int
	now       time.Duration
}

type transferUnderWay struct {
	until time.Duration
	r     *Request
}

const forever = 1<<63 - 1

// BlockSize returns the number of tokens in a block of the engines' KV caches.
func (c *Cluster) BlockSize() int { return c.blockSize }

// Fits returns an error if a request with this many prompt and output tokens
// can never be served. All engines have the same limits.
func (c *Cluster) Fits(prompt, output int) error { return c.front.engines[0].fits(prompt, output) }

// Submit adds a request. Call Advance first to process everything until now. An
// error describes why the request can never be served; the request is then not
// added.
func (c *Cluster) Submit(now time.Duration, r *Request) error {
	// A rejected request must not affect the router.
	if err := c.front.engines[0].check(r); err != nil {
		return err
	}
	c.now = max(c.now, now)
	r.until = r.Output
	if c.decode != nil {
		r.until = 1
	}
	e := c.front.pick(r)
	e.accept(c.now, r)
	e.changed()
	return nil
}

// Cancel ends a request immediately, frees its blocks and stops its events. The
// current step still takes its full time. Cancelling a request that has ended
// has no effect.
func (c *Cluster) Cancel(now time.Duration, r *Request) {
	c.now = max(c.now, now)
	if r.state == transferring {
		c.transfers.remove(func(t transferUnderWay) bool { return t.r == r })
	}
	if e := r.engine; e != nil {
		e.cancel(c.now, r)
		e.changed()
	}
}

// Next returns the time of the next event, assuming no further calls of Submit
// or Cancel, and whether there is one. It may begin a step: a request submitted
// later, even at the same time, waits for the next step.
func (c *Cluster) Next() (at time.Duration, ok bool) {
	at, _, ok = c.next(forever)
	return at, ok
}

// Advance advances the time and appends the events until then in order of time,
// those at the same time in order of engine, prefill engines first. No step
// begins at exactly the given time, so that requests submitted at that time can
// be part of it. It allocates only to grow events.
func (c *Cluster) Advance(now time.Duration, events []Event) []Event {
	for {
		at, e, ok := c.next(now)
		if !ok || at > now {
			c.now = max(c.now, now)
			return events
		}
		c.now = max(c.now, at)
		if e == nil {
			c.endTransfer(at)
			continue
		}
		e.changed()
		from := len(events)
		if events = e.process(at, events); e.prefillOnly {
			events = c.beginTransfers(events, from)
		}
	}
}

// next returns the time of the next event and its engine, or nil for the end of
// a transfer. See oneEngine.next.
func (c *Cluster) next(before time.Duration) (at time.Duration, e *oneEngine, ok bool) {
	at, e = c.front.next(before)
	if c.decode == nil {
		return at, e, e != nil
	}
	if t, d := c.decode.next(before); d != nil && (e == nil || t < at) {
		at, e = t, d
	}
	// A transfer ends after all other events of its time, like a request
	// submitted at that time.
	if c.transfers.len() > 0 {
		if t := c.transfers.front().until; e == nil || t < at {
			return t, nil, true
		}
	}
	return at, e, e != nil
}

// beginTransfers replaces the handover events starting at index from by
// transfers.
func (c *Cluster) beginTransfers(events []Event, from int) []Event {
	return append(events[:from], slices.DeleteFunc(events[from:], func(e Event) bool {
		if e.Kind != handover {
			return false
		}
		until := e.At + c.transfer.Base + times(e.Request.Prompt.tokens, c.transfer.PerToken)
		c.transfers.insert(transferUnderWay{until, e.Request}, func(other transferUnderWay) bool { return other.until > until })
		return true
	})...)
}

// endTransfer ends the next transfer: the prefill engine frees the blocks, and a
// decode engine continues.
func (c *Cluster) endTransfer(at time.Duration) {
	r := c.transfers.pop().r
	from := r.engine
	from.transferred(at, r)
	from.changed()
	r.until, r.computed = r.Output, r.Prompt.tokens
	to := c.decode.pick(r)
	to.accept(at, r)
	to.changed()
}

// Stats returns the combined state of all engines.
func (c *Cluster) Stats() (all Stats) {
	for _, s := range c.EachStats() {
		all.add(s)
	}
	return all
}

// EachStats returns the state of each engine, prefill engines before decode
// engines. Requests in transfer are reported as waiting at the first decode
// engine.
func (c *Cluster) EachStats() (each []Stats) {
	for _, e := range c.front.engines {
		each = append(each, e.state())
	}
	if c.decode == nil {
		return each
	}
	for i, e := range c.decode.engines {
		s := e.state()
		if i == 0 {
			s.Waiting += c.transfers.len()
		}
		each = append(each, s)
	}
	return each
}

func (s *Stats) add(other Stats) {
	s.Waiting += other.Waiting
	s.Running += other.Running
	s.KVBlocks += other.KVBlocks
	s.KVUsed += other.KVUsed
	s.QueriedTokens += other.QueriedTokens
	s.HitTokens += other.HitTokens
	s.PrefillTokens += other.PrefillTokens
	s.PromptTokens += other.PromptTokens
	s.GeneratedTokens += other.GeneratedTokens
	s.Preemptions += other.Preemptions
	s.Steps += other.Steps
	s.Busy += other.Busy
}
