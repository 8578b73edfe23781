package simserver

// prefixCache remembers which blocks of prompts have been computed, the least
// recently used leaving first. Its memory grows with use and is bounded by its
// capacity.
type prefixCache struct {
	capacity int
	index    map[uint64]int32
	// entries is a ring in order of use, linked by index so that it is one
	// piece of memory without pointers. entries[0] holds no block: its next is
	// the block used last, its prev the one that leaves first.
	entries []cacheEntry
}

type cacheEntry struct {
	hash       uint64
	prev, next int32
}

func newPrefixCache(capacity int) *prefixCache {
	return &prefixCache{
		capacity: capacity,
		index:    make(map[uint64]int32),
		entries:  make([]cacheEntry, 1),
	}
}

// len is the number of blocks held.
func (c *prefixCache) len() int { return len(c.entries) - 1 }

// lookup counts the leading blocks that are held, up to the first that is not.
// It does not count as a use.
func (c *prefixCache) lookup(blocks []uint64) int {
	for i, hash := range blocks {
		if _, ok := c.index[hash]; !ok {
			return i
		}
	}
	return len(blocks)
}

// use makes the blocks of one prompt the most recently used, from tail to
// head: a block is of no use without those before it, so the head has to
// outlive the tail. Blocks beyond the capacity are left out, because the head
// would push them out again.
func (c *prefixCache) use(blocks []uint64) {
	for i := min(len(blocks), c.capacity) - 1; i >= 0; i-- {
		c.touch(blocks[i])
	}
}

func (c *prefixCache) touch(hash uint64) {
	at, ok := c.index[hash]
	switch {
	case ok:
		c.unlink(at)
	case c.len() < c.capacity:
		at = int32(len(c.entries))
		c.entries = append(c.entries, cacheEntry{hash: hash})
		c.index[hash] = at
	default:
		at = c.entries[0].prev
		c.unlink(at)
		delete(c.index, c.entries[at].hash)
		c.entries[at].hash = hash
		c.index[hash] = at
	}
	c.linkFirst(at)
}

func (c *prefixCache) unlink(at int32) {
	e := c.entries[at]
	c.entries[e.prev].next = e.next
	c.entries[e.next].prev = e.prev
}

func (c *prefixCache) linkFirst(at int32) {
	first := c.entries[0].next
	c.entries[at].prev, c.entries[at].next = 0, first
	c.entries[first].prev = at
	c.entries[0].next = at
}
