package engine

import (
	"slices"
	"sort"
)

// kvCache is the KV cache: a number of blocks, each in use or free. A block
// that holds a full block of a known prompt is cached: later prompts find it
// while it is in use, and also when it is free until its room is needed. Free
// blocks that hold nothing of use go first, then the cached ones in the order
// in which they came free, of one request from tail to head.
//
// Which block holds what makes no difference, so blocks are only counted, and
// the cached ones are kept in the runs in which they were computed: a prompt
// of a thousand blocks is a run or two, or a few where it shares prefixes with
// others. Runs make a tree, each following its parent. A request uses whole
// runs, from the tree's root to the end of what it has computed, so what is
// cached is always cached from its beginning.
type kvCache struct {
	blockSize int
	free      int             // blocks that no request uses
	stale     int             // of these, the ones that are cached
	runs      map[uint64]*run // by the hash of their first blocks
	lru       run             // of a ring of the runs that are free; next goes first
}

// run is some consecutive blocks of prompts. A hash stands for all blocks
// before it too, so the last one tells the whole way from the root.
type run struct {
	hashes     []uint64
	parent     *run
	users      int
	prev, next *run // among the free
}

func newKVCache(capacity, blockSize int) *kvCache {
	c := &kvCache{blockSize: blockSize, free: capacity, runs: make(map[uint64]*run)}
	c.lru.prev, c.lru.next = &c.lru, &c.lru
	return c
}

// blocksFor is the number of blocks that hold so many tokens.
func (c *kvCache) blocksFor(tokens int) int { return (tokens + c.blockSize - 1) / c.blockSize }

// lookUp counts the leading blocks that are cached and, of these, the ones
// that are free.
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

// match is the number of the run's blocks that hashes begin with.
func (r *run) match(hashes []uint64) int {
	n := min(len(r.hashes), len(hashes))
	if r.hashes[n-1] == hashes[n-1] {
		return n
	}
	// Where two ways part they do not meet again.
	return sort.Search(n, func(i int) bool { return r.hashes[i] != hashes[i] })
}

// allocate takes blocks that hold nothing yet. There must be enough free.
func (c *kvCache) allocate(n int) {
	c.free -= n
	for over := c.stale - c.free; over > 0; over = c.stale - c.free {
		c.evict(over)
	}
}

// evict takes at most n blocks from the end of the run that is next.
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
	if rest < cap(r.hashes)/4 { // the memory of a long run is not kept for a short one
		r.hashes = slices.Clone(r.hashes)
	}
}

// follow uses cached blocks that come after those up to the run at, which is
// nil at the root, and returns the run with the last of them.
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

// keep makes blocks findable that were computed after those up to the run at,
// and returns the run with the last of them. They are part of what was
// allocated. What another request computed side by side is used instead, and
// the room given back.
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

// split makes the first n blocks of a run a run of their own and returns it.
// Who used the whole run uses both.
func (c *kvCache) split(r *run, n int) *run {
	head := &run{hashes: r.hashes[:n:n], parent: r.parent, users: r.users}
	r.hashes, r.parent = r.hashes[n:], head
	c.runs[head.hashes[0]], c.runs[r.hashes[0]] = head, r
	if r.users == 0 {
		c.link(head, r)
	}
	return head
}

// release gives up the blocks of a request: those up to the run at, and some
// that are not findable. A block is of no use without those before it, so the
// head has to outlive the tail.
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

// link lets a free run go after another.
func (c *kvCache) link(r, after *run) {
	r.prev, r.next = after, after.next
	after.next.prev, after.next = r, r
}
