package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"moontide/trace/block"
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

// Comparer compares fleets of workers on one trace. It keeps what fleets of
// several capacities have in common. It is not safe for concurrent use.
type Comparer struct {
	sequence  *Sequence
	blockSize int
	shared    *Curve
	routed    map[fixedRoute][]*Curve // of each worker
}

// fixedRoute is a routing that does not look at caches: what each worker gets
// is the same at every capacity, and the exact curve of what it gets tells all.
type fixedRoute struct {
	routing Routing
	workers int
	seed    uint64
}

// NewComparer returns a Comparer for a trace, which must not change any more,
// in blocks of blockSize tokens.
func NewComparer(s *Sequence, blockSize int) (*Comparer, error) {
	if blockSize < 1 {
		return nil, fmt.Errorf("comparing routings: block size %d is below 1 token", blockSize)
	}
	return &Comparer{s, blockSize, s.Curve(blockSize), map[fixedRoute][]*Curve{}}, nil
}

// Compare plays the trace against a fleet once for each routing. The result
// depends on nothing but the arguments.
//
// All routings but [Prefix] cost one curve (see [CurveBuilder]), whatever the
// number of workers, for all capacities together. [Prefix] is simulated for
// each capacity: a reference costs a few look-ups, and memory is 12 bytes
// for each block that the workers hold together, 4 for each that they have seen,
// and a bit for each worker and distinct block.
func (c *Comparer) Compare(f Fleet, routings ...Routing) (Comparison, error) {
	switch {
	case f.Workers < 1:
		return Comparison{}, fmt.Errorf("comparing routings: a fleet of %d workers", f.Workers)
	case f.Capacity < 0:
		return Comparison{}, fmt.Errorf("comparing routings: capacity %d is below 0 blocks", f.Capacity)
	}
	result := Comparison{
		SharedTotal:  c.shared.At(timesAtMost(f.Workers, f.Capacity, c.shared.Largest())),
		SharedSingle: c.shared.At(f.Capacity),
	}
	for _, r := range routings {
		if _, err := ParseRouting(string(r)); err != nil {
			return Comparison{}, fmt.Errorf("comparing routings: %w", err)
		}
		if r == Prefix {
			result.Routed = append(result.Routed, f.routeByPrefix(c.sequence, c.blockSize))
		} else {
			result.Routed = append(result.Routed, c.routeFixed(f, r))
		}
	}
	return result, nil
}

// routeFixed reads the hits of a fleet from the curves of its workers.
func (c *Comparer) routeFixed(f Fleet, routing Routing) Routed {
	key := fixedRoute{routing, f.Workers, f.Seed}
	curves, known := c.routed[key]
	if !known {
		curves = f.curves(c.sequence, routing, c.blockSize)
		c.routed[key] = curves
	}
	routed := Routed{Routing: routing, Workers: make([]Hits, f.Workers)}
	for w, curve := range curves {
		routed.Workers[w] = curve.At(f.Capacity)
		routed.Hits.addAll(routed.Workers[w])
	}
	return routed
}

// curves are those of the requests that each worker gets.
func (f Fleet) curves(s *Sequence, routing Routing, blockSize int) []*Curve {
	workers := make([]struct {
		own     block.Table // numbers its blocks anew, so that memory goes by what it sees
		builder CurveBuilder
	}, f.Workers)
	var ids []uint64
	var numbers []uint32
	pick := f.picker(s, routing)
	for i, r := range s.requests {
		w := &workers[pick(i)]
		ids = ids[:0]
		for _, number := range s.blocks(i) {
			ids = append(ids, uint64(number))
		}
		numbers = w.own.AppendNumbers(numbers[:0], ids)
		w.builder.Add(numbers, r.isl)
	}
	curves := make([]*Curve, f.Workers)
	for w := range workers {
		curves[w] = workers[w].builder.Curve(blockSize)
	}
	return curves
}

// timesAtMost is a*b, or most where that is smaller, without overflow.
func timesAtMost(a, b, most int) int {
	if b != 0 && a > most/b {
		return most
	}
	return a * b
}

// routeByPrefix plays the trace against an empty fleet.
func (f Fleet) routeByPrefix(s *Sequence, blockSize int) Routed {
	routed := Routed{Routing: Prefix, Workers: make([]Hits, f.Workers)}
	caches := make([]*lru, f.Workers)
	for i := range caches {
		caches[i] = newLRU(f.Capacity)
	}
	router := newPrefixRouter(s.distinct, routed.Workers, caches)
	for i, r := range s.requests {
		blocks := s.blocks(i)
		w := router.pick(blocks)
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
// their order.
func (f Fleet) picker(s *Sequence, routing Routing) func(request int) int {
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
	default:
		return func(int) int { return inTurn() }
	}
}
