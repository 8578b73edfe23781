package engine

import (
	"math/rand/v2"
	"time"

	"moontide/trace/routing"
)

// pool is a number of equal engines behind a router. It remembers what it knows
// of their next events, for most of the time only one of them has changed.
type pool struct {
	engines []*Engine
	router  *routing.Router
	next    []time.Duration // of each engine; forever: never; unsettled: ask
}

const unsettled = -1

func newPool(cfg Config, n int, policy routing.Policy, seed uint64) (*pool, error) {
	router, err := routing.New(policy, n, rand.New(rand.NewPCG(seed, 0x726f75746572))) // "router"
	if err != nil {
		return nil, err
	}
	p := &pool{router: router, next: make([]time.Duration, n)}
	for i := range n {
		e := newEngine(cfg)
		e.index = i
		p.engines = append(p.engines, e)
		p.next[i] = unsettled
	}
	return p, nil
}

// pick is the engine that a request goes to.
func (p *pool) pick(r *Request) *Engine {
	if len(p.engines) == 1 {
		return p.engines[0]
	}
	request := routing.Request{Session: routing.SessionHash(r.Session), Tokens: r.Prompt.tokens}
	load := func(i int) routing.Load {
		return routing.Load{Requests: p.engines[i].inFlight(), Tokens: p.engines[i].backlog}
	}
	cached := func(i int) int {
		hits, _ := p.engines[i].kv.lookUp(r.reusable())
		return hits * p.engines[i].cfg.BlockSize
	}
	return p.engines[p.router.Pick(request, load, cached)]
}

// changed notes that an engine may have another next event.
func (p *pool) changed(e *Engine) { p.next[e.index] = unsettled }

// due is the time of the next event and the engine that has it, the first of
// several. See Engine.due.
func (p *pool) due(before time.Duration) (at time.Duration, next *Engine) {
	best := -1
	for i, t := range p.next {
		if t == unsettled {
			t = p.ask(i, before)
		}
		if t < forever && (best < 0 || t < at) {
			at, best = t, i
		}
	}
	if best < 0 {
		return 0, nil
	}
	return at, p.engines[best]
}

// ask is the time of an engine's next event, or forever.
func (p *pool) ask(i int, before time.Duration) time.Duration {
	e := p.engines[i]
	at, ok := e.due(before)
	if !ok {
		at = forever
	}
	if !e.canBegin() {
		p.next[i] = at
	}
	return at
}
