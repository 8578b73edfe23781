package engine

import (
	"slices"
	"sort"
	"time"
)

// Cluster is a deployment at work. It is driven as an [Engine] is, and a
// cluster of one engine does exactly what that engine would. Make it with
// [Deployment.New]. It is not safe for concurrent use.
type Cluster struct {
	front     *pool // takes requests
	decode    *pool // nil: the front does everything
	transfer  Transfer
	transfers transferQueue
	blockSize int
	now       time.Duration
}

// NewPrompt returns an empty prompt in blocks of the engines' size. It may be
// called at any time from any goroutine.
func (c *Cluster) NewPrompt() *Prompt { return NewPrompt(c.blockSize) }

// BlockSize is the number of tokens in a block of the engines' KV caches.
func (c *Cluster) BlockSize() int { return c.blockSize }

// Fits is [Engine.Fits] of any engine: all are equal.
func (c *Cluster) Fits(prompt, output int) error { return c.front.engines[0].Fits(prompt, output) }

// Submit is [Engine.Submit] of the engine that the router picks.
func (c *Cluster) Submit(now time.Duration, r *Request) error {
	// All engines are equal, so what one refuses they all do, and a request
	// that is refused leaves no trace in the router.
	if err := c.front.engines[0].refuse(r); err != nil {
		return err
	}
	now = max(now, c.now)
	c.now = now
	r.until = r.Output
	if c.decode != nil {
		r.until = 1
	}
	e := c.front.pick(r)
	e.accept(now, r)
	c.front.changed(e)
	return nil
}

// Cancel is [Engine.Cancel], wherever the request is.
func (c *Cluster) Cancel(now time.Duration, r *Request) {
	c.now = max(c.now, now)
	if r.state == holding {
		c.transfers.remove(r)
	}
	if e := r.home; e != nil {
		e.Cancel(c.now, r)
		c.poolOf(e).changed(e)
	}
}

// poolOf is the pool of an engine.
func (c *Cluster) poolOf(e *Engine) *pool {
	if c.front.engines[min(e.index, len(c.front.engines)-1)] == e {
		return c.front
	}
	return c.decode
}

// Next is [Engine.Next] of all engines.
func (c *Cluster) Next() (at time.Duration, ok bool) {
	at, _, ok = c.due(forever)
	return at, ok
}

// Advance is [Engine.Advance] of all engines. Events of one time come in the
// order of the engines, those of prefill engines first.
func (c *Cluster) Advance(now time.Duration, events []Event) []Event {
	for {
		at, e, ok := c.due(now)
		if !ok || at > now {
			c.now = max(c.now, now)
			return events
		}
		c.now = at
		if e == nil {
			c.arrive(at)
			continue
		}
		c.poolOf(e).changed(e)
		from := len(events)
		if events = e.happen(at, events); e.holds {
			events = c.send(events, from)
		}
	}
}

// due is the time of the next event and the engine that has it: none, if it is
// the arrival of a transfer. See [Engine.due].
func (c *Cluster) due(before time.Duration) (at time.Duration, e *Engine, ok bool) {
	at, e = c.front.due(before)
	if c.decode == nil {
		return at, e, e != nil
	}
	if t, d := c.decode.due(before); d != nil && (e == nil || t < at) {
		at, e = t, d
	}
	// What arrives finds everything that happens until then, as what is
	// submitted does.
	if t, any := c.transfers.next(); any && (e == nil || t < at) {
		return t, nil, true
	}
	return at, e, e != nil
}

// send begins the transfers of the events from an index on, which tells nobody
// else.
func (c *Cluster) send(events []Event, from int) []Event {
	return append(events[:from], slices.DeleteFunc(events[from:], func(e Event) bool {
		if e.Kind != handover {
			return false
		}
		took := c.transfer.Base + times(e.Request.Prompt.tokens, c.transfer.PerToken)
		c.transfers.add(transferring{e.At + took, e.Request})
		return true
	})...)
}

// arrive ends the transfer that is next: the prefill engine has its blocks
// back, and a decode engine goes on.
func (c *Cluster) arrive(at time.Duration) {
	r := c.transfers.pop()
	from := r.home
	from.letGo(at, r)
	c.front.changed(from)
	r.until, r.computed = r.Output, r.Prompt.tokens
	to := c.decode.pick(r)
	to.accept(at, r)
	c.decode.changed(to)
}

// Stats returns the state of all engines together.
func (c *Cluster) Stats() (all Stats) {
	for _, s := range c.EachStats() {
		all.add(s)
	}
	return all
}

// EachStats returns the state of each engine, those that decode behind those
// that compute prompts. A request whose keys and values are on their way has no
// engine yet: it waits at the first that decodes.
func (c *Cluster) EachStats() (each []Stats) {
	for _, e := range c.front.engines {
		each = append(each, e.Stats())
	}
	if c.decode == nil {
		return each
	}
	for i, e := range c.decode.engines {
		s := e.Stats()
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

// transferQueue holds the transfers under way in order of their ends.
type transferQueue struct{ under []transferring }

type transferring struct {
	until time.Duration
	r     *Request
}

func (q *transferQueue) len() int { return len(q.under) }

func (q *transferQueue) next() (time.Duration, bool) {
	if len(q.under) == 0 {
		return 0, false
	}
	return q.under[0].until, true
}

func (q *transferQueue) add(t transferring) {
	i := sort.Search(len(q.under), func(i int) bool { return q.under[i].until > t.until })
	q.under = slices.Insert(q.under, i, t)
}

func (q *transferQueue) pop() *Request {
	r := q.under[0].r
	q.under = slices.Delete(q.under, 0, 1)
	return r
}

func (q *transferQueue) remove(r *Request) {
	q.under = slices.DeleteFunc(q.under, func(t transferring) bool { return t.r == r })
}
