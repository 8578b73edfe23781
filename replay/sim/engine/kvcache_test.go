package engine

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// naiveCache is an obviously correct KV cache: it identifies a block by all tokens up to
// its end, and looks at each separately.
type naiveCache struct {
	capacity int
	users    map[string]int // of what is cached
	free     []string       // cached and without a user, the next to go first
	others   int            // in use, not to be found
}

func (c *naiveCache) inUse() int {
	n := c.others
	for _, users := range c.users {
		if users > 0 {
			n++
		}
	}
	return n
}

func (c *naiveCache) lookUp(blocks []string) (hits, free int) {
	for _, b := range blocks {
		users, cached := c.users[b]
		if !cached {
			break
		}
		hits++
		if users == 0 {
			free++
		}
	}
	return hits, free
}

func (c *naiveCache) use(b string) {
	if c.users[b] == 0 {
		c.free = slices.DeleteFunc(c.free, func(x string) bool { return x == b })
	}
	c.users[b]++
}

func (c *naiveCache) allocate(n int) {
	for range n {
		c.others++
		if c.inUse()+len(c.free) > c.capacity {
			delete(c.users, c.free[0])
			c.free = c.free[1:]
		}
	}
}

func (c *naiveCache) keep(b string) {
	c.others--
	if _, cached := c.users[b]; cached {
		c.use(b)
		return
	}
	c.users[b] = 1
}

func (c *naiveCache) release(blocks []string, others int) {
	c.others -= others
	for _, b := range slices.Backward(blocks) {
		if c.users[b]--; c.users[b] == 0 {
			c.free = append(c.free, b)
		}
	}
}

// holder is the cache's view of a request.
type holder struct {
	prompt *Prompt
	blocks []string
	chain  *run
	kept   int // blocks
	others int
}

func newHolder(tokens []uint64, blockSize int) *holder {
	h := &holder{prompt: promptOf(blockSize, tokens...)}
	for end := blockSize; end <= len(tokens); end += blockSize {
		h.blocks = append(h.blocks, fmt.Sprint(tokens[:end]))
	}
	return h
}

func TestCacheEqualsNaiveOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity, blockSize := rapid.IntRange(1, 14).Draw(t, "capacity"), rapid.IntRange(1, 3).Draw(t, "block size")
		c := newKVCache(capacity, blockSize)
		plain := &naiveCache{capacity: capacity, users: map[string]int{}}
		var holders []*holder
		tokens := rapid.SliceOfN(rapid.Uint64Range(0, 1), 1, 18)
		check := func(what string) {
			stale := len(plain.free)
			if c.free != capacity-plain.inUse() || c.stale != stale {
				t.Fatalf("%s: %d free and %d of these cached, want %d and %d", what, c.free, c.stale, capacity-plain.inUse(), stale)
			}
			h := newHolder(tokens.Draw(t, "looked up"), blockSize)
			hits, free := c.lookUp(h.prompt.blocks)
			if wantHits, wantFree := plain.lookUp(h.blocks); hits != wantHits || free != wantFree {
				t.Fatalf("%s: %d hits, %d free; want %d, %d", what, hits, free, wantHits, wantFree)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"admit": func(t *rapid.T) {
				h := newHolder(tokens.Draw(t, "tokens"), blockSize)
				extra := rapid.IntRange(0, 2).Draw(t, "others")
				hits, free := c.lookUp(h.prompt.blocks)
				need := len(h.blocks) - hits + extra
				if need > c.free-free {
					t.Skip("no room")
				}
				h.chain, h.kept, h.others = c.follow(nil, h.prompt.blocks[:hits]), hits, need
				for _, b := range h.blocks[:hits] {
					plain.use(b)
				}
				c.allocate(need)
				plain.allocate(need)
				holders = append(holders, h)
				check("admitted")
			},
			"keep": func(t *rapid.T) {
				if len(holders) == 0 {
					t.Skip("no holder")
				}
				h := rapid.SampledFrom(holders).Draw(t, "holder")
				n := rapid.IntRange(0, len(h.blocks)-h.kept).Draw(t, "blocks")
				if n == 0 {
					t.Skip("all kept")
				}
				h.chain = c.keep(h.chain, h.prompt.blocks[h.kept:h.kept+n])
				for _, b := range h.blocks[h.kept : h.kept+n] {
					plain.keep(b)
				}
				h.kept += n
				h.others -= n
				check("kept")
			},
			"release": func(t *rapid.T) {
				if len(holders) == 0 {
					t.Skip("no holder")
				}
				i := rapid.IntRange(0, len(holders)-1).Draw(t, "holder")
				h := holders[i]
				holders = slices.Delete(holders, i, i+1)
				c.release(h.chain, h.others)
				plain.release(h.blocks[:h.kept], h.others)
				check("released")
			},
			"": func(*rapid.T) {},
		})
	})
}

func TestEvictionFreesMemory(t *testing.T) {
	c := newKVCache(1000, 1)
	h := newHolder(sequence(1000, 1), 1)
	c.allocate(1000)
	c.release(c.keep(nil, h.prompt.blocks), 0)
	c.allocate(999)
	for _, r := range c.runs {
		if len(r.hashes) != 1 || cap(r.hashes) > 250 {
			t.Errorf("a run of %d blocks keeps the memory of %d", len(r.hashes), cap(r.hashes))
		}
	}
}
