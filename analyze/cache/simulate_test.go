package cache_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"moontide/analyze/cache"
)

func TestPoliciesAgainstNaiveOnes(t *testing.T) {
	for policy, victim := range victims {
		t.Run(string(policy), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				blockSize := rapid.IntRange(1, 16).Draw(rt, "block size")
				rows := drawRequests(rt, blockSize)
				capacities := upTo(distinct(rows) + 1)
				for capacity, got := range simulate(t, rows, policy, blockSize, capacities...) {
					if want := naiveHits(rows, newNaive(capacity, victim), blockSize); !same(got, want) {
						rt.Fatalf("capacity %d: %+v, want %+v", capacity, got, want)
					}
				}
			})
		})
	}
}

// upTo is 0, 1, ..., n.
func upTo(n int) []int {
	capacities := make([]int, n+1)
	for i := range capacities {
		capacities[i] = i
	}
	return capacities
}

// naiveBelady looks for the next use of every block each time.
func naiveBelady(rows []request, capacity, blockSize int) cache.Hits {
	var references []uint32
	for _, r := range rows {
		references = append(references, r.blocks...)
	}
	const never = 1 << 30
	nextUse := func(b uint32, after int) int {
		for i := after + 1; i < len(references); i++ {
			if references[i] == b {
				return i
			}
		}
		return never
	}
	var h cache.Hits
	held := map[uint32]bool{}
	now := 0
	for _, r := range rows {
		hit, tokens := 0, 0
		for i, b := range r.blocks {
			if held[b] {
				hit++
				tokens += max(0, min(blockSize, r.isl-i*blockSize))
			}
			held[b] = true
			if len(held) > capacity {
				victim, farthest := b, nextUse(b, now)
				for other := range held {
					if next := nextUse(other, now); next > farthest {
						victim, farthest = other, next
					}
				}
				delete(held, victim)
			}
			now++
		}
		h = plus(h, r, hit, 0)
		h.HitTokens += tokens
	}
	return h
}

func TestBeladyAgainstNaiveOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		blockSize := rapid.IntRange(1, 16).Draw(rt, "block size")
		rows := drawRequests(rt, blockSize)
		for capacity, got := range simulate(t, rows, cache.Belady, blockSize, upTo(distinct(rows)+1)...) {
			if want := naiveBelady(rows, capacity, blockSize); !same(got, want) {
				rt.Fatalf("capacity %d: %+v, want %+v", capacity, got, want)
			}
		}
	})
}

func TestRoomForReuse(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows := drawRequests(rt, 4)
		room := cache.RoomForReuse(sequenceOf(rows))
		unique := distinct(rows)
		hits := simulate(t, rows, cache.Belady, 4, upTo(unique+1)...)
		all := hits[unique+1].Blocks - unique // every use but the first
		if got := hits[room].HitBlocks; got != all {
			rt.Fatalf("with room for %d blocks Belady hits %d, want %d", room, got, all)
		}
		if room >= 2 && hits[room-2].HitBlocks == all {
			rt.Fatalf("%d blocks are enough, but RoomForReuse is %d", room-2, room)
		}
	})
	// 1 and 2 are still to be reused while 3 is in use, which never is again.
	rows := []request{{blocks: []uint32{1, 2, 3}}, {blocks: []uint32{1, 2}}}
	if got := cache.RoomForReuse(sequenceOf(rows)); got != 3 {
		t.Errorf("room for %d blocks, want 3", got)
	}
}

func TestSimulateErrors(t *testing.T) {
	s := sequenceOf(example)
	for _, c := range []struct {
		policy    cache.Policy
		blockSize int
		capacity  int
		want      string
	}{
		{"lruu", 16, 1, `"lruu" is not one of lru, lfu, fifo, belady`},
		{cache.LRU, 0, 1, "block size 0"},
		{cache.Belady, 16, -1, "capacity is negative: -1 blocks"},
	} {
		_, err := cache.Simulate(s, c.policy, c.blockSize, c.capacity)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v", c, err)
		}
	}
	if p, err := cache.ParsePolicy("Belady"); p != cache.Belady || err != nil {
		t.Errorf("Belady parses as %q, %v", p, err)
	}
}
