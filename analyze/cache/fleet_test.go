package cache_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"moontide/analyze/cache"
	"moontide/trace/routing"
)

func compare(t testing.TB, rows []request, f cache.Fleet, blockSize int, policies ...routing.Policy) cache.FleetPoint {
	return compared(t, sequenceOf(rows), f, blockSize, policies...)
}

func compared(t testing.TB, s *cache.Sequence, f cache.Fleet, blockSize int, policies ...routing.Policy) cache.FleetPoint {
	points, err := f.Compare(s, blockSize, []int{f.Capacity}, policies...)
	if err != nil {
		t.Fatal(err)
	}
	return points[0]
}

// naiveRoute plays rows against naive caches; pick chooses a worker for each.
func naiveRoute(rows []request, workers, capacity, blockSize int, pick func(i int, r request, caches []*naiveCache, given []int) int) []cache.Hits {
	hits := make([]cache.Hits, workers)
	caches := make([]*naiveCache, workers)
	for w := range caches {
		caches[w] = newNaive(capacity, victims[cache.LRU])
	}
	given := make([]int, workers)
	for i, r := range rows {
		w := pick(i, r, caches, given)
		hits[w] = plus(hits[w], r, caches[w].serve(r.blocks), blockSize)
		given[w] += len(r.blocks)
	}
	return hits
}

func naiveRoundRobin(i int, _ request, caches []*naiveCache, _ []int) int { return i % len(caches) }

func naiveLeastLoaded(_ int, _ request, _ []*naiveCache, given []int) int {
	return slices.Index(given, slices.Min(given))
}

// naivePrefix asks every worker for its prefix.
func naivePrefix(_ int, r request, caches []*naiveCache, given []int) int {
	total := 0
	for _, g := range given {
		total += g
	}
	best, longest := -1, -1
	for w, c := range caches {
		if float64(given[w]*len(caches)) > 1.25*float64(total) {
			continue
		}
		m := 0
		for m < len(r.blocks) && c.uses[r.blocks[m]] > 0 {
			m++
		}
		if m > longest || m == longest && given[w] < given[best] {
			best, longest = w, m
		}
	}
	return best
}

func TestRoutingAgainstNaiveOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows := drawRequests(rt, 4)
		workers := rapid.SampledFrom([]int{1, 2, 3, 4, 64, 65, 130}).Draw(rt, "workers")
		capacity := rapid.IntRange(0, 12).Draw(rt, "capacity")
		c := compare(t, rows, cache.Fleet{Workers: workers, Capacity: capacity}, 4, routing.RoundRobin, routing.Prefix, routing.LeastLoaded)
		total := naiveHits(rows, newNaive(workers*capacity, victims[cache.LRU]), 4)
		if !same(c.SharedTotal, total) {
			rt.Fatalf("shared cache of all: %+v, want %+v", c.SharedTotal, total)
		}
		single := naiveHits(rows, newNaive(capacity, victims[cache.LRU]), 4)
		if !same(c.SharedSingle, single) {
			rt.Fatalf("shared cache of one worker's size: %+v, want %+v", c.SharedSingle, single)
		}
		for i, want := range [][]cache.Hits{
			naiveRoute(rows, workers, capacity, 4, naiveRoundRobin),
			naiveRoute(rows, workers, capacity, 4, naivePrefix),
			naiveRoute(rows, workers, capacity, 4, naiveLeastLoaded),
		} {
			sum := cache.Hits{}
			for w, h := range c.Routed[i].Workers {
				if !same(h, want[w]) {
					rt.Fatalf("%s, worker %d: %+v, want %+v", c.Routed[i].Routing, w, h, want[w])
				}
				sum = cache.Hits{
					Requests: sum.Requests + h.Requests, Blocks: sum.Blocks + h.Blocks, Tokens: sum.Tokens + h.Tokens,
					HitBlocks: sum.HitBlocks + h.HitBlocks, HitTokens: sum.HitTokens + h.HitTokens,
					RequestShares: sum.RequestShares + h.RequestShares,
				}
			}
			if !same(c.Routed[i].Hits, sum) {
				rt.Fatalf("%s: %+v, its workers together %+v", c.Routed[i].Routing, c.Routed[i].Hits, sum)
			}
		}
	})
}

// conversations are sessions of growing prompts under one root of 10 blocks,
// their turns interleaved.
func conversations(sessions, turns int) []request {
	var rows []request
	for turn := range turns {
		for s := range sessions {
			var blocks []uint32
			for i := range uint32(10) {
				blocks = append(blocks, i)
			}
			for i := range uint32(5 * (turn + 1)) {
				blocks = append(blocks, 10+uint32(s)*1000+i)
			}
			rows = append(rows, request{blocks, 16 * len(blocks), string(rune('A' + s))})
		}
	}
	return rows
}

func TestGroupedRequestsAreSessions(t *testing.T) {
	rows := conversations(13, 6)
	first, sessions := map[string]int32{}, []int32{}
	for i, r := range rows {
		if _, known := first[r.session]; !known {
			first[r.session] = int32(i)
		}
		sessions = append(sessions, first[r.session])
	}
	f := cache.Fleet{Workers: 4, Capacity: 1 << 20}
	s := sequenceOf(rows)
	s.Group(sessions)
	for how, c := range map[string]cache.FleetPoint{
		"by name": compare(t, rows, f, 16, routing.Session), "by number": compared(t, s, f, 16, routing.Session),
	} {
		used := 0
		for _, w := range c.Routed[0].Workers {
			if w.Requests%6 != 0 {
				t.Errorf("%s: a worker got %d requests: some session is split", how, w.Requests)
			}
			used += min(w.Requests, 1)
		}
		if used < 2 {
			t.Errorf("%s: all sessions went to %d worker", how, used)
		}
		// Every turn hits the turn before; only the first ones may miss the root, once a worker.
		if hits := c.Routed[0].Hits.HitBlocks; hits < c.SharedTotal.HitBlocks-3*10 {
			t.Errorf("%s: %d blocks hit, of %d", how, hits, c.SharedTotal.HitBlocks)
		}
	}
	for i := range sessions {
		sessions[i] = -1
	}
	s.Group(sessions)
	none := compared(t, s, f, 16, routing.Session, routing.RoundRobin)
	if !reflect.DeepEqual(none.Routed[0].Workers, none.Routed[1].Workers) {
		t.Errorf("session routing of requests without one %+v, round-robin %+v", none.Routed[0].Workers, none.Routed[1].Workers)
	}
}

func TestRandomRoutingIsSeeded(t *testing.T) {
	rows := conversations(20, 5)
	workers := func(seed uint64) []cache.Hits {
		return compare(t, rows, cache.Fleet{Workers: 3, Capacity: 200, Seed: seed}, 16, routing.Random).Routed[0].Workers
	}
	if !reflect.DeepEqual(workers(1), workers(1)) {
		t.Error("equal seeds give different results")
	}
	if reflect.DeepEqual(workers(1), workers(2)) {
		t.Error("different seeds give equal results")
	}
	for w, h := range workers(1) {
		if h.Requests < 20 || h.Requests > 47 { // 33 of 100 each, give or take 3 deviations
			t.Errorf("worker %d got %d of 100 requests", w, h.Requests)
		}
	}
}

func TestCompareErrors(t *testing.T) {
	for _, c := range []struct {
		fleet     cache.Fleet
		blockSize int
		policy    routing.Policy
		want      string
	}{
		{cache.Fleet{Workers: 0}, 16, routing.Random, "0 workers"},
		{cache.Fleet{Workers: 1, Capacity: -1}, 16, routing.Random, "capacity -1"},
		{cache.Fleet{Workers: 1}, 0, routing.Random, "block size 0"},
		{cache.Fleet{Workers: 1}, 16, "best", `"best" is not one of round-robin, random, least-loaded, session, prefix`},
	} {
		_, err := c.fleet.Compare(sequenceOf(example), c.blockSize, []int{c.fleet.Capacity}, c.policy)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v", c, err)
		}
	}
	// Curves of one capacity must not show at another.
	points, err := cache.Fleet{Workers: 2, Seed: 9}.Compare(sequenceOf(example), 10, []int{3, 1, 0}, routing.Policies()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		if want := compare(t, example, p.Fleet, 10, routing.Policies()...); !reflect.DeepEqual(p, want) {
			t.Errorf("%+v: %+v, want %+v", p.Fleet, p, want)
		}
	}
	huge := cache.Fleet{Workers: 1 << 10, Capacity: 1 << 60}
	if got := compare(t, example, huge, 10).SharedTotal.HitBlocks; got != 8 {
		t.Errorf("a cache of 2^70 blocks hits %d, want 8", got)
	}
}
