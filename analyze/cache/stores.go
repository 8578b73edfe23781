package cache

import (
	"math"

	"moontide/trace/block"
)

// lru evicts the least recently used block. Its memory depends on the blocks that
// it has seen, not on the total number, so a fleet can have many.
type lru struct {
	capacity int
	slots    block.Sparse // from a block to its slot plus 1
	blocks   []uint32     // the block in each slot
	links    links        // of slots
	recency  list
}

func newLRU(capacity int) *lru {
	return &lru{capacity: capacity, recency: list{none, none}}
}

func (c *lru) has(number uint32) bool { return c.slots.At(number) > 0 }

func (c *lru) use(number uint32) {
	if slot := c.slots.At(number) - 1; slot != none {
		if slot != c.recency.newest {
			c.links.remove(&c.recency, slot)
			c.links.push(&c.recency, slot)
		}
		return
	}
	slot := c.freeSlot()
	c.blocks[slot] = number
	c.slots.Set(number, slot+1)
	c.links.push(&c.recency, slot)
}

// freeSlot returns a slot that is in no list, evicting a block if necessary.
func (c *lru) freeSlot() uint32 {
	if n := len(c.blocks); n < c.capacity {
		c.blocks = append(c.blocks, 0)
		c.links = append(c.links, struct{ older, newer uint32 }{})
		return uint32(n)
	}
	slot := c.recency.oldest
	number := c.blocks[slot]
	c.links.remove(&c.recency, slot)
	c.slots.Set(number, 0)
	return slot
}

// fifo evicts the block that was inserted first.
type fifo struct {
	capacity int
	cached   []bool   // of each block number
	queue    []uint32 // a ring once it is full: next is the oldest
	next     int
}

func newFIFO(distinct, capacity int) *fifo {
	return &fifo{capacity: capacity, cached: make([]bool, distinct)}
}

func (c *fifo) has(number uint32) bool { return c.cached[number] }

func (c *fifo) use(number uint32) {
	if c.cached[number] {
		return
	}
	c.cached[number] = true
	if len(c.queue) < c.capacity {
		c.queue = append(c.queue, number)
		return
	}
	c.cached[c.queue[c.next]] = false
	c.queue[c.next] = number
	c.next = (c.next + 1) % c.capacity
}

// lfu evicts the least frequently used block, breaking ties by least recent use.
// Blocks with the same number of uses form a list in order of their last use, so
// each step takes constant time (Shah, Mitra and Matani, An O(1) Algorithm for
// Implementing the LFU Cache Eviction Scheme, 2010).
type lfu struct {
	capacity, size int
	uses           []uint32 // of each block number; 0: not cached
	links          links    // of block numbers
	byUses         []list   // the blocks with each number of uses
	fewest         uint32   // the fewest uses of a cached block
}

func newLFU(distinct, capacity int) *lfu {
	return &lfu{
		capacity: capacity,
		uses:     make([]uint32, distinct),
		links:    make(links, distinct),
		byUses:   []list{{none, none}, {none, none}},
	}
}

func (c *lfu) has(number uint32) bool { return c.uses[number] > 0 }

func (c *lfu) use(number uint32) {
	uses := c.uses[number]
	switch {
	case uses > 0:
		c.links.remove(&c.byUses[uses], number)
		if uses == c.fewest && c.byUses[uses].oldest == none {
			c.fewest++
		}
		if int(uses)+1 == len(c.byUses) {
			c.byUses = append(c.byUses, list{none, none})
		}
	case c.size < c.capacity:
		c.size++
		c.fewest = 1
	default:
		evicted := c.byUses[c.fewest].oldest
		c.links.remove(&c.byUses[c.fewest], evicted)
		c.uses[evicted] = 0
		c.fewest = 1
	}
	c.uses[number]++
	c.links.push(&c.byUses[uses+1], number)
}

// none means no item.
const none = math.MaxUint32

// list is a queue of numbered items. Their neighbours are in links, which lists may
// share if each item is in only one of them.
type list struct{ oldest, newest uint32 }

type links []struct{ older, newer uint32 }

// push appends an item that is in no list.
func (l links) push(to *list, item uint32) {
	l[item].older, l[item].newer = to.newest, none
	if to.newest == none {
		to.oldest = item
	} else {
		l[to.newest].newer = item
	}
	to.newest = item
}

// remove removes an item from its list.
func (l links) remove(from *list, item uint32) {
	older, newer := l[item].older, l[item].newer
	if older == none {
		from.oldest = newer
	} else {
		l[older].newer = newer
	}
	if newer == none {
		from.newest = older
	} else {
		l[newer].older = older
	}
}
