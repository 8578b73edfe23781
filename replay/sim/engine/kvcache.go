package engine

import (
	"slices"
	"sort"
)

// kvCache is a KV cache of blocks, each free or used by requests. A full block
// of a known prompt is cached: later prompts can find it while it is used, and
// while it is free until its space is needed. Free blocks that are not cached
// are reused first, then cached ones in the order in which they were freed,
// from tail to head within a request.
//
// Blocks are interchangeable, so they are only counted. Cached blocks are
// stored in runs, as they were computed: a prompt of a thousand blocks has one
// or two runs, or a few if it shares prefixes. Runs form a tree. A request uses
// whole runs starting at the root, so all blocks before a cached block are
// cached too.
type kvCache struct {
	blockSize int
	free      int             // blocks that no request uses
	stale     int             // free blocks that are cached
	runs      map[uint64]*run // by the hash of their first block
	lru       run             // the ring of free runs; next is evicted first
}

// run is a sequence of prompt blocks. A block's hash covers all blocks before
// it.
type run struct {
	hashes     []uint64
	parent     *run
	users      int
	prev, next *run // in the ring of free runs
}

func newKVCache(capacity, blockSize int) *kvCache {
	c := &kvCache{blockSize: blockSize, free: capacity, runs: make(map[uint64]*run)}
	c.lru.prev, c.lru.next = &c.lru, &c.lru
	return c
}

// blocksFor returns the number of blocks needed for tokens.
func (c *kvCache) blocksFor(tokens int) int { return (tokens + c.blockSize - 1) / c.blockSize }

// lookUp returns the number of leading blocks that are cached, and how many of
// those are free.
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

// match returns the number of leading blocks of the run that match hashes.
func (r *run) match(hashes []uint64) int {
	n := min(len(r.hashes), len(hashes))
	if r.hashes[n-1] == hashes[n-1] {
		return n
	}
	// After the first difference, all hashes differ.
	return sort.Search(n, func(i int) bool { return r.hashes[i] != hashes[i] })
}

// allocate takes n empty blocks. At least n must be free.
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
	if rest < cap(r.hashes)/4 { // a short run must not retain the memory of a long one
		r.hashes = slices.Clone(r.hashes)
	}
}

// follow uses cached blocks after the run at (nil: the root) and returns the
// run that contains the last of them.
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

// keep caches allocated blocks after the run at and returns the run that
// contains the last of them. If another request has cached some of them
// meanwhile, it uses those instead and frees the duplicates.
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

// split moves the first n blocks of a run to a new run and returns that. Users
// of the whole run use both.
func (c *kvCache) split(r *run, n int) *run {
	head := &run{hashes: r.hashes[:n:n], parent: r.parent, users: r.users}
	r.hashes, r.parent = r.hashes[n:], head
	c.runs[head.hashes[0]], c.runs[r.hashes[0]] = head, r
	if r.users == 0 {
		c.link(head, r)
	}
	return head
}

// release frees the blocks of a request: those up to the run at, and others
// that are not cached. The tail is freed first, because a block is useless
// without those before it.
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

// link inserts a free run after another in the eviction order.
func (c *kvCache) link(r, after *run) {
	r.prev, r.next = after, after.next
	after.next.prev, after.next = r, r
}
