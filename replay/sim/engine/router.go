package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Routing is a rule for which engine a request goes to.
type Routing string

const (
	// RoundRobin gives the requests to the engines in turn.
	RoundRobin Routing = "round-robin"
	// Random draws an engine for each request, from the deployment's seed.
	Random Routing = "random"
	// LeastLoaded takes the engine with the fewest requests, of several the one
	// with the fewest prompt tokens to compute.
	LeastLoaded Routing = "least-loaded"
	// Session sends all requests of a session to one engine, which the hash of
	// its name picks. Requests without a session go to the engines in turn.
	Session Routing = "session"
	// Prefix takes the engine with the least to do before the answer begins:
	// the tokens of the prompt that it does not have cached, those of other
	// prompts that it has yet to compute, and 200 for each request that it has,
	// which is about what a step longer by one more sequence costs it until the
	// sequence ends. So a cached prefix counts for what it saves, and a prompt
	// that all requests begin with brings them all to the engine that saw it
	// first only until another would be done with it sooner.
	Prefix Routing = "prefix"
)

// tokensPerRequest is what a request in flight weighs for [Prefix].
const tokensPerRequest = 200

// Routings are all routings.
func Routings() []Routing { return []Routing{RoundRobin, Random, LeastLoaded, Session, Prefix} }

// ParseRouting returns the routing of a name, in any case.
func ParseRouting(name string) (Routing, error) {
	r := Routing(strings.ToLower(name))
	if !slices.Contains(Routings(), r) {
		var names []string
		for _, known := range Routings() {
			names = append(names, string(known))
		}
		return "", fmt.Errorf("routing %q is not one of %s", name, strings.Join(names, ", "))
	}
	return r, nil
}

// router picks one of several engines for a request.
type router interface {
	pick(engines []*Engine, r *Request) int
}

// newRouter returns the router of a routing that is known.
func newRouter(r Routing, seed uint64) router {
	routing, _ := ParseRouting(string(r))
	switch routing {
	case Random:
		return random{rand.New(rand.NewPCG(seed, 0x726f75746572))}
	case LeastLoaded:
		return leastLoaded{}
	case Session:
		return &bySession{}
	case Prefix:
		return byPrefix{}
	}
	return &roundRobin{}
}

type roundRobin struct{ next int }

func (t *roundRobin) pick(engines []*Engine, _ *Request) int {
	i := t.next % len(engines)
	t.next = i + 1
	return i
}

type random struct{ *rand.Rand }

func (t random) pick(engines []*Engine, _ *Request) int { return t.IntN(len(engines)) }

type bySession struct{ others roundRobin }

func (t *bySession) pick(engines []*Engine, r *Request) int {
	if r.Session == "" {
		return t.others.pick(engines, r)
	}
	return int(xxhash.Sum64String(r.Session) % uint64(len(engines)))
}

type leastLoaded struct{}

func (leastLoaded) pick(engines []*Engine, _ *Request) int {
	best := 0
	for i, e := range engines {
		if less(e.inFlight(), e.backlog, engines[best].inFlight(), engines[best].backlog) {
			best = i
		}
	}
	return best
}

type byPrefix struct{}

func (byPrefix) pick(engines []*Engine, r *Request) int {
	best, fewest := -1, 0
	for i, e := range engines {
		hits, _ := e.kv.lookUp(r.reusable())
		tokens := e.backlog + r.Prompt.tokens - hits*e.cfg.BlockSize + tokensPerRequest*e.inFlight()
		if best < 0 || tokens < fewest {
			best, fewest = i, tokens
		}
	}
	return best
}

// less compares pairs, first by first.
func less(a1, a2, b1, b2 int) bool { return a1 < b1 || a1 == b1 && a2 < b2 }
