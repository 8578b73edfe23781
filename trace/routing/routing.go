// Package routing decides which of several workers a request goes to. The
// cache analysis (moontide/analyze/cache) and the simulated engine
// (moontide/replay/sim/engine) share it.
//
// Call [New], then [Router.Pick] for each request in order of arrival:
//
//	r, err := routing.New(routing.Session, 4, nil)
//	...
//	worker := r.Pick(routing.Request{Session: routing.SessionHash("chat-17")}, nil, nil)
//
// A router has no model of caches, queues or clocks: for [LeastLoaded] and
// [Prefix] the caller reports the state of each worker. The same calls with the
// same random source give the same workers. A Router is not safe for concurrent
// use.
package routing

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Policy is a rule for choosing a worker.
type Policy string

const (
	// RoundRobin picks the workers in turn.
	RoundRobin Policy = "round-robin"
	// Random draws a worker for each request.
	Random Policy = "random"
	// LeastLoaded picks the worker with the fewest requests. Ties go to the
	// worker with the fewest tokens to compute, then to the first.
	LeastLoaded Policy = "least-loaded"
	// Session sends all requests of a session to the worker that the hash of
	// the session's name picks, and requests without a session round-robin.
	Session Policy = "session"
	// Prefix picks the worker expected to answer soonest: the one with the
	// fewest tokens to compute first. These are the prompt's uncached tokens,
	// the tokens of its current load, and 200 for each request in flight (about
	// the cost of one more sequence in the batch). So a cached prefix is worth
	// the computation it saves, and a prefix shared by all prompts does not
	// send them all to one worker. Ties go to the worker that was sent the
	// fewest prompt tokens so far, then to the first.
	Prefix Policy = "prefix"
)

// tokensPerRequest is the weight of a request in flight for [Prefix].
const tokensPerRequest = 200

// Policies returns all policies.
func Policies() []Policy { return []Policy{RoundRobin, Random, LeastLoaded, Session, Prefix} }

// Parse returns the policy with a name. It ignores case and accepts underscores
// for hyphens.
func Parse(name string) (Policy, error) {
	p := Policy(strings.ReplaceAll(strings.ToLower(name), "_", "-"))
	if !slices.Contains(Policies(), p) {
		var names []string
		for _, known := range Policies() {
			names = append(names, string(known))
		}
		return "", fmt.Errorf("routing %q is not one of %s", name, strings.Join(names, ", "))
	}
	return p, nil
}

// SessionHash returns the hash of a session's name that [Session] routes by. The
// empty name means no session and has the hash 0.
func SessionHash(name string) uint64 {
	if name == "" {
		return 0
	}
	return max(xxhash.Sum64String(name), 1)
}

// Request holds the properties of a request that affect routing.
type Request struct {
	Session uint64 // see [SessionHash]; 0: none
	Tokens  int    // length of the prompt
}

// Load is the work that a worker has not finished.
type Load struct {
	Requests int // waiting or running
	Tokens   int // of their prompts, still to be computed
}

// Router picks workers by one policy. Make it with [New].
type Router struct {
	policy Policy
	turn   int // the worker whose turn is next
	random *rand.Rand
	sent   []int // prompt tokens sent to each worker, for Prefix
}

// New returns a router for a number of workers, at least 1, identified by their
// indexes from 0. The policy "" is [RoundRobin]. [Random] draws from random,
// which may be nil for the other policies.
func New(p Policy, workers int, random *rand.Rand) (*Router, error) {
	if p == "" {
		p = RoundRobin
	}
	p, err := Parse(string(p))
	switch {
	case err != nil:
		return nil, err
	case workers < 1:
		return nil, fmt.Errorf("routing to %d workers; need at least 1", workers)
	case p == Random && random == nil:
		return nil, errors.New("random routing without random numbers")
	}
	return &Router{policy: p, random: random, sent: make([]int, workers)}, nil
}

// Policy returns the router's policy.
func (r *Router) Policy() Policy { return r.policy }

// Pick returns the worker for the next request. load returns a worker's load, and
// cached the number of leading prompt tokens in its cache. [LeastLoaded] calls
// load and [Prefix] calls both; for other policies they may be nil.
func (r *Router) Pick(request Request, load func(worker int) Load, cached func(worker int) int) int {
	switch r.policy {
	case Random:
		return r.random.IntN(len(r.sent))
	case LeastLoaded:
		return r.leastLoaded(load)
	case Prefix:
		return r.soonest(request, load, cached)
	case Session:
		if request.Session != 0 {
			return int(request.Session % uint64(len(r.sent)))
		}
	}
	worker := r.turn
	r.turn = (r.turn + 1) % len(r.sent)
	return worker
}

func (r *Router) leastLoaded(load func(int) Load) int {
	best, least := 0, load(0)
	for w := 1; w < len(r.sent); w++ {
		l := load(w)
		if l.Requests < least.Requests || l.Requests == least.Requests && l.Tokens < least.Tokens {
			best, least = w, l
		}
	}
	return best
}

func (r *Router) soonest(request Request, load func(int) Load, cached func(int) int) int {
	best, fewest := 0, 0
	for w, sent := range r.sent {
		l := load(w)
		tokens := l.Tokens + tokensPerRequest*l.Requests + request.Tokens - cached(w)
		if w == 0 || tokens < fewest || tokens == fewest && sent < r.sent[best] {
			best, fewest = w, tokens
		}
	}
	r.sent[best] += request.Tokens
	return best
}
