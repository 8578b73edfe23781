package engine

import (
	"math/rand/v2"
	"time"

	"moontide/trace/routing"
)

// pool is a group of identical engines with a router. It caches the times of
// their next events, because usually only one of them has changed.
type pool struct {
	engines []*oneEngine
	ranks   []*rank // the first ranks of all engines before the second
	router  *routing.Router
	nextAt  []time.Duration // of each engine; forever: none; unknown: ask
	begun   time.Duration   // when steps could last begin
}

const unknown = -1

func newPool(cfg Config, n int, policy routing.Policy, seed uint64) (*pool, error) {
	cfg = cfg.WithDefaults()
	router, err := routing.New(policy, n*cfg.Ranks, rand.New(rand.NewPCG(seed, 0x726f75746572))) // "router"
	if err != nil {
		return nil, err
	}
	p := &pool{router: router, begun: -1, nextAt: make([]time.Duration, n)}
	for i := range n {
		p.engines = append(p.engines, newEngine(cfg, p, i))
		p.nextAt[i] = unknown
	}
	for i := range cfg.Ranks {
		for _, e := range p.engines {
			p.ranks = append(p.ranks, e.ranks[i])
		}
	}
	return p, nil
}

// pick returns the rank for a request.
func (p *pool) pick(now time.Duration, r *Request) *rank {
	if len(p.ranks) == 1 {
		return p.ranks[0]
	}
	request := routing.Request{Session: routing.SessionHash(r.Session), Tokens: r.Prompt.tokens}
	load := func(i int) routing.Load {
		return routing.Load{Requests: p.ranks[i].inFlight(), Tokens: p.ranks[i].backlog}
	}
	cached := func(i int) int {
		k := p.ranks[i]
		k.engine.settle(now)
		k.engine.changed()
		hits, _ := k.kv.lookUp(k.reusable(r))
		return hits * k.cfg.BlockSize
	}
	return p.ranks[p.router.Pick(request, load, cached)]
}

// changed records that the next event of the engine may have changed.
func (e *oneEngine) changed() { e.pool.nextAt[e.index] = unknown }

// next returns the time of the next event and its engine; ties go to the first
// engine. See oneEngine.next.
func (p *pool) next(before time.Duration) (at time.Duration, next *oneEngine) {
	if len(p.engines) == 1 { // asking it costs less than the cache
		if at, ok := p.engines[0].next(before); ok {
			return at, p.engines[0]
		}
		return 0, nil
	}
	best := -1
	for i, t := range p.nextAt {
		if t == unknown {
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

// ask returns the time of an engine's next event, or forever.
func (p *pool) ask(i int, before time.Duration) time.Duration {
	e := p.engines[i]
	at, ok := e.next(before)
	if !ok {
		at = forever
	}
	if !e.canBegin() {
		p.nextAt[i] = at
	}
	return at
}
