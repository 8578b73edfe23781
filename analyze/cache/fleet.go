package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Routing is a rule for which worker of a fleet a request goes to.
type Routing string

const (
	// RoundRobin gives the requests to the workers in turn.
	RoundRobin Routing = "round-robin"
	// Random draws a worker for each request, from the fleet's seed.
	Random Routing = "random"
	// Session sends all requests of a session to one worker, which the hash of
	// its name picks. Requests without a session go to the workers in turn.
	Session Routing = "session"
	// Prefix sends a request to the worker that has the longest prefix of it in
	// its cache, of several to the one that was given the fewest blocks so far.
	//
	// Workers that were given more than 1.25 times the average are passed over,
	// so that a prompt that all requests begin with does not bring them all to
	// the worker that saw it first: soon each worker has it, it speaks for none,
	// and the least loaded is taken. (The bound is that of consistent hashing
	// with bounded loads: Mirrokni, Thorup and Zadimoghaddam, 2018.)
	Prefix Routing = "prefix"
)

// loadBound is the load of a worker over the average from which on [Prefix]
// passes it over.
const loadBound = 1.25

// Routings are all routings.
func Routings() []Routing { return []Routing{RoundRobin, Random, Session, Prefix} }

// ParseRouting returns the routing of a name, in any case.
func ParseRouting(name string) (Routing, error) {
	r := Routing(strings.ToLower(name))
	if !slices.Contains(Routings(), r) {
		return "", fmt.Errorf("routing %q is not one of %s", name, names(Routings()))
	}
	return r, nil
}

// Fleet is a number of workers, each with an LRU cache of its own that sees
// only what a router sends it.
type Fleet struct {
	Workers  int    // at least 1
	Capacity int    // of each worker, in blocks, at least 0
	Seed     uint64 // of [Random]
}

// Comparison is what a fleet hits, beside single caches that see all requests.
type Comparison struct {
	// SharedTotal is one cache as large as all workers' together, the mark for
	// every routing, and SharedSingle one as large as a worker's.
	SharedTotal, SharedSingle Hits
	// Routed is in the order in which the routings were asked for.
	Routed []Routed
}

// Routed is what a fleet hits with a routing.
type Routed struct {
	Routing Routing
	Hits    Hits
	// Workers is what each was given and hit: how even the load is.
	Workers []Hits
}

// Compare plays a trace against a fleet once for each routing. The result
// depends on nothing but the arguments.
//
// A reference costs a few look-ups in a map. Memory is about 30 bytes for each
// block that the workers hold together and, for [Prefix], a bit for each worker
// and distinct block.
func Compare(s *Sequence, f Fleet, blockSize int, routings ...Routing) (Comparison, error) {
	switch {
	case f.Workers < 1:
		return Comparison{}, fmt.Errorf("comparing routings: a fleet of %d workers", f.Workers)
	case f.Capacity < 0:
		return Comparison{}, fmt.Errorf("comparing routings: capacity %d is below 0 blocks", f.Capacity)
	case blockSize < 1:
		return Comparison{}, fmt.Errorf("comparing routings: block size %d is below 1 token", blockSize)
	}
	curve := s.Curve(blockSize)
	c := Comparison{
		SharedTotal:  curve.At(timesAtMost(f.Workers, f.Capacity, curve.Largest())),
		SharedSingle: curve.At(f.Capacity),
	}
	for _, r := range routings {
		if _, err := ParseRouting(string(r)); err != nil {
			return Comparison{}, fmt.Errorf("comparing routings: %w", err)
		}
		c.Routed = append(c.Routed, f.route(s, r, blockSize))
	}
	return c, nil
}

// timesAtMost is a*b, or most where that is smaller, without overflow.
func timesAtMost(a, b, most int) int {
	if b != 0 && a > most/b {
		return most
	}
	return a * b
}

// route plays the trace against an empty fleet.
func (f Fleet) route(s *Sequence, routing Routing, blockSize int) Routed {
	routed := Routed{Routing: routing, Workers: make([]Hits, f.Workers)}
	caches := make([]*lru, f.Workers)
	for i := range caches {
		caches[i] = newLRU(f.Capacity)
	}
	pick := f.picker(s, routing, routed.Workers, caches)
	for i, r := range s.requests {
		w := pick(i)
		blocks := s.blocks(i)
		hit := 0
		if f.Capacity > 0 {
			hit = serve(caches[w], blocks)
		}
		routed.Workers[w].add(hit, len(blocks), r.isl, blockSize)
		routed.Hits.add(hit, len(blocks), r.isl, blockSize)
	}
	return routed
}

// picker returns the function that picks the worker of each request, called in
// their order. given is what each worker got so far.
func (f Fleet) picker(s *Sequence, routing Routing, given []Hits, caches []*lru) func(request int) int {
	turn := 0
	inTurn := func() int {
		w := turn
		turn = (turn + 1) % f.Workers
		return w
	}
	switch routing {
	case Random:
		random := rand.New(rand.NewPCG(f.Seed, 0))
		return func(int) int { return random.IntN(f.Workers) }
	case Session:
		return func(request int) int {
			if hash := s.requests[request].session; hash != 0 {
				return int(hash % uint64(f.Workers))
			}
			return inTurn()
		}
	case Prefix:
		router := newPrefixRouter(s.distinct, given, caches)
		return func(request int) int { return router.pick(s.blocks(request)) }
	default:
		return func(int) int { return inTurn() }
	}
}
