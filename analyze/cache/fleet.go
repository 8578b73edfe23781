package cache

import (
	"fmt"
	"math/rand/v2"

	"moontide/trace/block"
	"moontide/trace/routing"
)

// maxOverload is how far above the average a worker's load may be before
// [routing.Prefix] avoids it (consistent hashing with bounded loads: Mirrokni,
// Thorup and Zadimoghaddam, 2018).
const maxOverload = 1.25

// Fleet is a number of workers behind a router, each with its own LRU cache.
//
// A worker's load is the number of blocks sent to it so far, because a trace does
// not record when it is done: [routing.LeastLoaded] selects the lowest load, and
// [routing.Prefix] the longest cached prefix where the load is at most 1.25 times
// the average.
type Fleet struct {
	Workers  int    // at least 1
	Capacity int    // of each worker, in blocks, at least 0
	Seed     uint64 // for [routing.Random]
}

// Comparison holds the hits of a fleet and of single caches that serve all
// requests.
type Comparison struct {
	// SharedTotal is for one cache as large as all workers' together, the upper
	// bound for routing. SharedSingle is for one as large as a single worker's.
	SharedTotal, SharedSingle Hits
	// Routed is in the order of the policies given.
	Routed []Routed
}

// Routed holds the hits of a fleet with a routing policy.
type Routed struct {
	Routing routing.Policy
	Hits    Hits
	Workers []Hits // by worker: shows how even the load is
}

// Comparer compares fleets of workers on one trace. It caches the results that
// fleets of different capacities share. It is not safe for concurrent use.
type Comparer struct {
	sequence  *Sequence
	blockSize int
	shared    *Curve
	routed    map[fixedRoute][]*Curve // of each worker
}

// fixedRoute is routing that does not depend on caches: each worker gets the same
// requests at every capacity, so one curve per worker holds all its hits.
type fixedRoute struct {
	policy routing.Policy
	fleet  Fleet // without its capacity
}

// NewComparer returns a Comparer for a trace in blocks of blockSize tokens. The
// trace must not change any more.
func NewComparer(s *Sequence, blockSize int) (*Comparer, error) {
	if blockSize < 1 {
		return nil, fmt.Errorf("comparing routings: block size %d is below 1 token", blockSize)
	}
	return &Comparer{s, blockSize, s.Curve(blockSize), map[fixedRoute][]*Curve{}}, nil
}

// Compare simulates the trace on a fleet with each routing policy.
//
// All policies but [routing.Prefix] take the time of one curve (see [CurveBuilder])
// for all capacities together. [routing.Prefix] is simulated for each capacity; it
// holds 12 bytes per cached block, 4 per block seen by a worker, and a bit per worker
// and distinct block.
func (c *Comparer) Compare(f Fleet, policies ...routing.Policy) (Comparison, error) {
	switch {
	case f.Workers < 1:
		return Comparison{}, fmt.Errorf("comparing routings: %d workers; need at least 1", f.Workers)
	case f.Capacity < 0:
		return Comparison{}, fmt.Errorf("comparing routings: capacity %d is below 0 blocks", f.Capacity)
	}
	result := Comparison{
		SharedTotal:  c.shared.At(timesAtMost(f.Workers, f.Capacity, c.shared.Largest())),
		SharedSingle: c.shared.At(f.Capacity),
	}
	for _, p := range policies {
		router, err := routing.New(p, f.Workers, rand.New(rand.NewPCG(f.Seed, 0)))
		if err != nil {
			return Comparison{}, fmt.Errorf("comparing routings: %w", err)
		}
		if router.Policy() == routing.Prefix {
			result.Routed = append(result.Routed, f.routeByPrefix(c.sequence, router, c.blockSize))
		} else {
			result.Routed = append(result.Routed, c.routeFixed(f, router))
		}
	}
	return result, nil
}

// routeFixed returns the hits of a fleet from the curves of its workers.
func (c *Comparer) routeFixed(f Fleet, router *routing.Router) Routed {
	key := fixedRoute{router.Policy(), Fleet{Workers: f.Workers, Seed: f.Seed}}
	curves, known := c.routed[key]
	if !known {
		curves = f.curves(c.sequence, router, c.blockSize)
		c.routed[key] = curves
	}
	routed := Routed{Routing: router.Policy(), Workers: make([]Hits, f.Workers)}
	for w, curve := range curves {
		routed.Workers[w] = curve.At(f.Capacity)
		routed.Hits.add(routed.Workers[w])
	}
	return routed
}

// curves returns the curve of each worker's requests.
func (f Fleet) curves(s *Sequence, router *routing.Router, blockSize int) []*Curve {
	workers := make([]struct {
		own     block.Table // renumbers its blocks, so that memory depends on what it sees
		builder CurveBuilder
		sent    int // blocks
	}, f.Workers)
	load := func(w int) routing.Load { return routing.Load{Tokens: workers[w].sent} }
	var ids []uint64
	var numbers []uint32
	for i, r := range s.requests {
		w := &workers[router.Pick(routing.Request{Session: r.session}, load, nil)]
		ids = ids[:0]
		for _, number := range s.blocks(i) {
			ids = append(ids, uint64(number))
		}
		numbers = w.own.AppendNumbers(numbers[:0], ids)
		w.builder.Add(numbers, r.isl)
		w.sent += len(numbers)
	}
	curves := make([]*Curve, f.Workers)
	for w := range workers {
		curves[w] = workers[w].builder.Curve(blockSize)
	}
	return curves
}

// timesAtMost returns min(a*b, most) without overflow.
func timesAtMost(a, b, most int) int {
	if b != 0 && a > most/b {
		return most
	}
	return a * b
}

// routeByPrefix simulates the trace on an empty fleet.
func (f Fleet) routeByPrefix(s *Sequence, router *routing.Router, blockSize int) Routed {
	routed := Routed{Routing: routing.Prefix, Workers: make([]Hits, f.Workers)}
	f.eachByPrefix(s, router, blockSize, func(i, worker, hit int) {
		blocks, isl := len(s.blocks(i)), s.requests[i].isl
		routed.Workers[worker].addRequest(hit, blocks, isl, blockSize)
		routed.Hits.addRequest(hit, blocks, isl, blockSize)
	})
	return routed
}

// eachByPrefix visits each request with its worker and the number of its blocks that
// hit there.
func (f Fleet) eachByPrefix(s *Sequence, router *routing.Router, blockSize int, visit func(i, worker, hit int)) {
	caches := make([]*lru, f.Workers)
	for i := range caches {
		caches[i] = newLRU(f.Capacity)
	}
	sent, total := make([]int, f.Workers), 0 // blocks
	var cached []int                         // leading blocks of the request, by worker
	load := func(w int) routing.Load {
		if float64(sent[w])*float64(f.Workers) > maxOverload*float64(total) {
			return routing.Load{Tokens: maxTokens} // full
		}
		return routing.Load{}
	}
	hit := func(w int) int { return cached[w] * blockSize }
	holders := newHolders(s.distinct, caches)
	for i := range s.requests {
		blocks := s.blocks(i)
		cached = holders.lookUp(blocks)
		w := router.Pick(routing.Request{Tokens: len(blocks) * blockSize}, load, hit)
		if f.Capacity > 0 {
			serve(caches[w], blocks)
		}
		sent[w] += len(blocks)
		total += len(blocks)
		visit(i, w, cached[w])
	}
}
