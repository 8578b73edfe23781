package engine

import (
	"slices"
	"sort"
)

// kvCache is a KV cache of blocks, each used by requests or free. A full block of a
// known prompt is cached: later prompts can find it while it is used, and while it is
// free until its room is needed. Free blocks that are not cached are reused first, then
// cached ones in the order in which they were freed, within a request from tail to head.
//
// Blocks are interchangeable, so they are only counted. Cached blocks are kept as runs,
// as they were computed: a prompt of a thousand blocks has one or two runs, or a few
// where it shares prefixes. Runs form a tree. A request uses whole runs from the root
// on, so every cached block has all blocks before it cached too.
type kvCache struct {
	blockSize int
	free      int             // blocks that no request uses
	stale     int             // of these, cached ones
	runs      map[uint64]*run // by the hash of their first blocks
	lru       run             // the ring of free runs; next is evicted first
}

// run is a sequence of blocks of prompts. A hash stands for all blocks before it too.
type run struct {
	hashes     []uint64
	parent     *run
	users      int
	prev, next *run // among the free ones
}

func newKVCache(capacity, blockSize int) *kvCache {
	c := &kvCache{blockSize: blockSize, free: capacity, runs: make(map[uint64]*run)}
	c.lru.prev, c.lru.next = &c.lru, &c.lru
	return c
}

// blocksFor returns the number of blocks for tokens.
func (c *kvCache) blocksFor(tokens int) int { return (tokens + c.blockSize - 1) / c.blockSize }

// lookUp returns the number of leading blocks that are cached, and how many of these
// are free.
func (c *kvCache) lookUp(hashes []uint64) (hits, free int) {
	for hits < len(hashes) {
		r := c.runs[hashes[hits]]
		if r == nil {
			break
		}
		same := r.match(hashes[hits:])
		hits += same
		if r.users == 0 {
			free += same
		}
		if same < len(r.hashes) {
			break
		}
	}
	return hits, free
}

// match returns the number of leading blocks of the run that hashes begin with.
func (r *run) match(hashes []uint64) int {
	n := min(len(r.hashes), len(hashes))
	if r.hashes[n-1] == hashes[n-1] {
		return n
	}
	// After the first difference all hashes differ.
	return sort.Search(n, func(i int) bool { return r.hashes[i] != hashes[i] })
}

// allocate takes n empty blocks. There must be enough free ones.
func (c *kvCache) allocate(n int) {
	c.free -= n
	for over := c.stale - c.free; over > 0; over = c.stale - c.free {
		c.evict(over)
	}
}

// evict removes at most n blocks from the end of the least recently used run.
func (c *kvCache) evict(n int) {
	r := c.lru.next
	rest := len(r.hashes) - n
	if rest <= 0 {
		c.stale -= len(r.hashes)
		c.unlink(r)
		delete(c.runs, r.hashes[0])
		return
	}
	c.stale -= n
	r.hashes = r.hashes[:rest]
	if rest < cap(r.hashes)/4 { // a short run must not keep the memory of a long one
		r.hashes = slices.Clone(r.hashes)
	}
}

// follow uses cached blocks that follow the run at (nil: the root), and returns the
// run with the last of them.
func (c *kvCache) follow(at *run, hashes []uint64) *run {
	for len(hashes) > 0 {
		r := c.runs[hashes[0]]
		if n := r.match(hashes); n < len(r.hashes) {
			r = c.split(r, n)
		}
		if r.users == 0 {
			c.unlink(r)
			c.free -= len(r.hashes)
			c.stale -= len(r.hashes)
		}
		r.users++
		at, hashes = r, hashes[len(r.hashes):]
	}
	return at
}

// keep caches allocated blocks that follow the run at, and returns the run with the last
// of them. Blocks that another request has cached meanwhile are used instead, and their
// room is freed.
func (c *kvCache) keep(at *run, hashes []uint64) *run {
	hits, _ := c.lookUp(hashes)
	if hits > 0 {
		at = c.follow(at, hashes[:hits])
		c.free += hits
	}
	if hits == len(hashes) {
		return at
	}
	r := &run{hashes: slices.Clone(hashes[hits:]), parent: at, users: 1}
	c.runs[r.hashes[0]] = r
	return r
}

// split makes the first n blocks of a run a run of their own and returns it. Users of
// the whole run use both.
func (c *kvCache) split(r *run, n int) *run {
	head := &run{hashes: r.hashes[:n:n], parent: r.parent, users: r.users}
	r.hashes, r.parent = r.hashes[n:], head
	c.runs[head.hashes[0]], c.runs[r.hashes[0]] = head, r
	if r.users == 0 {
		c.link(head, r)
	}
	return head
}

// release frees the blocks of a request: those up to the run at, and others that are
// not cached. A block is useless without those before it, so the tail is freed first.
func (c *kvCache) release(at *run, others int) {
	c.free += others
	for ; at != nil; at = at.parent {
		if at.users--; at.users == 0 {
			c.link(at, c.lru.prev)
			c.free += len(at.hashes)
			c.stale += len(at.hashes)
		}
	}
}

func (c *kvCache) unlink(r *run) {
	r.prev.next, r.next.prev = r.next, r.prev
	r.prev, r.next = nil, nil
}

// link puts a free run after another in the eviction order.
func (c *kvCache) link(r, after *run) {
	r.prev, r.next = after, after.next
	after.next.prev, after.next = r, r
}
