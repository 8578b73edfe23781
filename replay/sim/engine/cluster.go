package engine

import (
	"cmp"
	"slices"
	"time"
)

// Cluster is a running deployment, often of one engine. Make it with
// [Deployment.New]. All methods take the time as a duration since a start chosen
// by the caller; times before that of an earlier call are treated as that time. A
// Cluster is not safe for concurrent use.
type Cluster struct {
	front    *pool // accepts requests
	decode   *pool // nil: the front computes answers too
	latency  time.Duration
	arriving fifo[arrivingRequest]
	transfer Transfer
	ended    []transferUnderWay // scratch
	now      time.Duration
}

// arrivingRequest is a request that has not reached the router yet.
type arrivingRequest struct {
	at time.Duration
	r  *Request
}

const forever = 1<<63 - 1

// BlockSize returns the number of tokens in a block of the engines' KV caches.
func (c *Cluster) BlockSize() int { return c.front.ranks[0].cfg.BlockSize }

// Fits returns an error if a request with this many prompt and output tokens
// can never be served.
func (c *Cluster) Fits(prompt, output int) error {
	if c.decode == nil {
		return c.front.ranks[0].fits(prompt, output)
	}
	if err := c.decode.ranks[0].fits(prompt, output); err != nil {
		return err
	}
	return c.front.ranks[0].fits(prompt, 1)
}

// check returns an error if a request can never be served.
func (c *Cluster) check(r *Request) error {
	switch {
	case r.state != idle:
		return ErrSubmitted
	case r.Prompt == nil:
		return ErrNoPrompt
	case r.Prompt.blockSize != c.BlockSize():
		return ErrBlockSize
	}
	return c.Fits(r.Prompt.tokens, r.Output)
}

// Submit adds a request. Call Advance for this instant first; otherwise the
// request waits for the events that are due. An error describes why the request
// can never be served; the request is then not added.
func (c *Cluster) Submit(now time.Duration, r *Request) error {
	// A rejected request must not affect the router.
	if err := c.check(r); err != nil {
		return err
	}
	c.now = max(c.now, now)
	r.until = r.Output
	if c.decode != nil {
		r.until = 1
	}
	if c.latency > 0 {
		r.state = arriving
		c.arriving.push(arrivingRequest{c.now + c.latency, r})
		return nil
	}
	c.enter(c.now, r)
	return nil
}

// enter passes a request to the router.
func (c *Cluster) enter(now time.Duration, r *Request) {
	k := c.front.pick(now, r)
	k.accept(now, r)
	k.engine.changed()
}

// Cancel ends a request immediately, frees its blocks and stops its events. The
// current step still takes its full time. Cancelling a request that has ended has no
// effect.
func (c *Cluster) Cancel(now time.Duration, r *Request) {
	c.now = max(c.now, now)
	switch r.state {
	case arriving:
		c.arriving.remove(func(a arrivingRequest) bool { return a.r == r })
		r.state = ended
	case transferring:
		r.rank.link.cancel(c.now, r)
	}
	if k := r.rank; k != nil {
		k.cancel(c.now, r)
		k.engine.changed()
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
			events = c.endTransfers(at, events)
			c.endLatencies(at)
			continue
		}
		e.changed()
		from := len(events)
		events = e.process(at, events)
		if c.decode != nil && e.pool == c.front {
			events = c.beginTransfers(events, from)
		}
	}
}

// next returns the time of the next event and its engine, or nil for the end of
// transfers and latencies. See oneEngine.next.
func (c *Cluster) next(before time.Duration) (at time.Duration, e *oneEngine, ok bool) {
	if before > c.now {
		c.front.begun = c.now
		if c.decode != nil {
			c.decode.begun = c.now
		}
	}
	at, e = c.front.next(before)
	if c.decode == nil && c.latency == 0 {
		return at, e, e != nil
	}
	if c.decode != nil {
		if t, d := c.decode.next(before); d != nil && (e == nil || t < at) {
			at, e = t, d
		}
	}
	// Requests arrive at an engine after all other events of the same time,
	// like those submitted at that time.
	if t, any := c.nextArrival(); any && (e == nil || t < at) {
		return t, nil, true
	}
	return at, e, e != nil
}

// nextArrival returns the time of the next end of a transfer or a latency.
func (c *Cluster) nextArrival() (at time.Duration, ok bool) {
	if c.arriving.len() > 0 {
		at, ok = c.arriving.front().at, true
	}
	if c.decode == nil {
		return at, ok
	}
	for _, k := range c.front.ranks {
		if t, any := k.link.next(); any && (!ok || t < at) {
			at, ok = t, true
		}
	}
	return at, ok
}

// endLatencies passes the requests on that reach the router now.
func (c *Cluster) endLatencies(now time.Duration) {
	for c.arriving.len() > 0 && c.arriving.front().at <= now {
		c.enter(now, c.arriving.pop().r)
	}
}

// beginTransfers replaces the handover events starting at index from by
// transfers.
func (c *Cluster) beginTransfers(events []Event, from int) []Event {
	kept := events[:from]
	for _, e := range events[from:] {
		if e.Kind != handover {
			kept = append(kept, e)
			continue
		}
		if c.transfer.FirstTokenAfter {
			kept = kept[:len(kept)-1] // the first token, just before
		}
		r := e.Request
		r.rank.link.start(e.At, r, c.transfer.Base+times(r.Prompt.tokens, c.transfer.PerToken).Duration())
	}
	return kept
}

// endTransfers ends the transfers that end now, in order of start: the prefill
// engines free the blocks, and decode engines continue.
func (c *Cluster) endTransfers(now time.Duration, events []Event) []Event {
	if c.decode == nil {
		return events
	}
	c.ended = c.ended[:0]
	for _, k := range c.front.ranks {
		if at, any := k.link.next(); any && at <= now {
			c.ended = k.link.end(now, c.ended)
		}
	}
	slices.SortStableFunc(c.ended, func(a, b transferUnderWay) int { return cmp.Compare(a.start, b.start) })
	for _, t := range c.ended {
		if c.transfer.FirstTokenAfter {
			events = append(events, Event{t.r, First, now})
		}
		from := t.r.rank
		from.transferred(now, t.r)
		from.engine.changed()
		t.r.until, t.r.computed = t.r.Output, t.r.Prompt.tokens
		to := c.decode.pick(now, t.r)
		to.accept(now, t.r)
		to.engine.changed()
	}
	return events
}

// Stats returns the combined state of all engines.
func (c *Cluster) Stats() (all Stats) {
	for _, s := range c.EachStats() {
		all.add(s)
	}
	return all
}

// EachStats returns the state of each rank, engine by engine, prefill engines
// before decode engines. Requests that have not reached the router are reported
// as waiting at the first rank, those in transfer at the first decode rank.
func (c *Cluster) EachStats() (each []Stats) {
	each = c.front.eachStats(c.now, each)
	each[0].Waiting += c.arriving.len()
	if c.decode == nil {
		return each
	}
	each = c.decode.eachStats(c.now, each)
	for _, k := range c.front.ranks {
		each[len(c.front.ranks)].Waiting += k.transferring
	}
	return each
}

func (p *pool) eachStats(now time.Duration, each []Stats) []Stats {
	for _, e := range p.engines {
		for _, k := range e.ranks {
			each = append(each, k.state(now))
		}
	}
	return each
}

func (s *Stats) add(other Stats) {
	s.Waiting += other.Waiting
	s.Running += other.Running
	s.KVBlocks += other.KVBlocks
	s.KVUsed += other.KVUsed
	s.Admitted += other.Admitted
	s.Queued += other.Queued
	s.QueriedTokens += other.QueriedTokens
	s.HitTokens += other.HitTokens
	s.PrefillTokens += other.PrefillTokens
	s.PromptTokens += other.PromptTokens
	s.GeneratedTokens += other.GeneratedTokens
	s.Preemptions += other.Preemptions
	s.Steps += other.Steps
	s.Busy += other.Busy
}
