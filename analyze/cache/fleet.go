package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"

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
	Capacity int    // of each worker, in blocks
	Seed     uint64 // for [routing.Random]
}

// Routed holds the hits of a fleet with a routing policy.
type Routed struct {
	Routing routing.Policy
	Hits    Hits
	Workers []Hits // by worker: shows how even the load is
}

// FleetPoint holds the hits of a fleet and of single caches that serve all requests.
type FleetPoint struct {
	Fleet
	// SharedTotal is for one cache as large as all workers' together, the upper
	// bound for routing. SharedSingle is for one as large as a single worker's.
	SharedTotal, SharedSingle Hits
	// Routed is in the order of the policies given.
	Routed []Routed
}

// Compare simulates a trace in blocks of blockSize tokens on the fleet, with each of the
// capacities, in blocks, and each routing policy.
//
// All policies but [routing.Prefix] take the time of one curve (see [CurveBuilder])
// for all capacities together, because each worker gets the same requests at every
// capacity. [routing.Prefix] is simulated for each capacity; it holds 12 bytes per cached
// block and 4 per block seen by a worker.
func (f Fleet) Compare(s *Sequence, blockSize int, capacities []int, policies ...routing.Policy) ([]FleetPoint, error) {
	switch {
	case f.Workers < 1:
		return nil, fmt.Errorf("comparing routings: %d workers; need at least 1", f.Workers)
	case blockSize < 1:
		return nil, fmt.Errorf("comparing routings: block size %d is below 1 token", blockSize)
	}
	shared, points := s.Curve(blockSize), make([]FleetPoint, len(capacities))
	for i, n := range capacities {
		if f.Capacity = n; n < 0 {
			return nil, fmt.Errorf("comparing routings: capacity %d is below 0 blocks", n)
		}
		points[i].Fleet = f
		points[i].SharedTotal, points[i].SharedSingle = shared.At(timesAtMost(f.Workers, n, shared.Largest())), shared.At(n)
	}
	for _, policy := range policies {
		var curves []*Curve // of each worker
		for i := range points {
			router, err := routing.New(policy, f.Workers, rand.New(rand.NewPCG(f.Seed, 0)))
			if err != nil {
				return nil, fmt.Errorf("comparing routings: %w", err)
			}
			p := &points[i]
			if router.Policy() == routing.Prefix {
				p.Routed = append(p.Routed, p.routeByPrefix(s, router, blockSize))
				continue
			}
			if curves == nil {
				curves = f.curves(s, router, blockSize)
			}
			routed := Routed{Routing: router.Policy(), Workers: make([]Hits, f.Workers)}
			for w, curve := range curves {
				routed.Workers[w] = curve.At(p.Capacity)
				routed.Hits.add(routed.Workers[w])
			}
			p.Routed = append(p.Routed, routed)
		}
	}
	return points, nil
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
	caches := make([]*lru, f.Workers)
	for i := range caches {
		caches[i] = newLRU(f.Capacity)
	}
	sent, total := make([]int, f.Workers), 0 // blocks
	cached := make([]int, f.Workers)         // leading blocks of the request, by worker
	var left []int                           // workers that have all of the blocks so far
	load := func(w int) routing.Load {
		if float64(sent[w])*float64(f.Workers) > maxOverload*float64(total) {
			return routing.Load{Tokens: maxTokens} // full
		}
		return routing.Load{}
	}
	hit := func(w int) int { return cached[w] * blockSize }
	for i := range s.requests {
		blocks := s.blocks(i)
		left = left[:0]
		for w := range caches {
			cached[w], left = 0, append(left, w)
		}
		for i := 0; i < len(blocks) && len(left) > 0; i++ {
			left = slices.DeleteFunc(left, func(w int) bool { return !caches[w].has(blocks[i]) })
			for _, w := range left {
				cached[w] = i + 1
			}
		}
		w := router.Pick(routing.Request{Tokens: len(blocks) * blockSize}, load, hit)
		if f.Capacity > 0 {
			serve(caches[w], blocks)
		}
		sent[w] += len(blocks)
		total += len(blocks)
		routed.Workers[w].addRequest(cached[w], len(blocks), s.requests[i].isl, blockSize)
		routed.Hits.addRequest(cached[w], len(blocks), s.requests[i].isl, blockSize)
	}
	return routed
}
