package cache

import "moontide/trace/block"

// headBlocks is the capacity up to which a [SampledBuilder] finds the exact curve. A
// hundredth of so many blocks makes the estimates beyond good to a few tenths of a point.
const headBlocks = 1 << 16

// held is how many times the blocks of the largest cache are held before most are forgotten,
// which takes as long as a few uses of each.
const held = 4

// head finds the exact curve of caches of few blocks in a trace of any number: it forgets
// blocks that none of these caches has. It takes about 200 bytes for each block of the
// largest one.
type head struct {
	most     int // blocks
	table    block.Table
	ids      []uint64 // by number in the table
	timeline timeline
	largest  int  // distance
	forgot   bool // blocks
	gains    []gain
	numbers  []uint32
	runs     []run
}

// gain is what a cache hits more than one that is smaller by a block.
type gain struct {
	hits   int
	shares float64
	// isl and blocks are sums over the prompts of which the last block is hit. It may be
	// partial, by the block size, which is known only at the end.
	isl, blocks int
}

func newHead(most int) *head { return &head{most: most, gains: make([]gain, most)} }

// add looks up and then uses the blocks of the next request.
func (h *head) add(ids []uint64, isl int) {
	h.numbers = h.table.AppendNumbers(h.numbers[:0], ids)
	for i, n := range h.numbers {
		if int(n) == len(h.ids) {
			h.ids = append(h.ids, ids[i])
		}
	}
	h.runs = h.timeline.lookUp(h.runs[:0], h.numbers)
	hit, share := 0, 1/float64(len(ids))
	for _, r := range h.runs {
		for i := range int(max(r.n, -r.n)) {
			distance := int(r.distance)
			if r.n > 0 {
				distance += i
			}
			hit++
			if h.largest = max(h.largest, distance); distance >= h.most {
				break
			}
			g := &h.gains[distance]
			g.hits++
			g.shares += share
			if hit == len(ids) {
				g.isl, g.blocks = g.isl+isl, g.blocks+len(ids)
			}
		}
	}
	h.timeline.use(h.numbers)
	if h.timeline.live > held*h.most {
		h.forget()
	}
}

// forget keeps only the blocks used last.
func (h *head) forget() {
	h.forgot = true
	h.timeline.compact()
	latest := make([]uint64, h.most)
	for number, id := range h.ids {
		place, _ := h.timeline.lastUse(uint32(number))
		if later := h.timeline.live - 1 - int(place); later < h.most {
			latest[later] = id
		}
	}
	h.table, h.timeline, h.ids = block.Table{}, timeline{}, latest
	h.numbers = h.table.AppendNumbers(h.numbers[:0], latest)
	h.timeline.use(h.numbers)
}

// whole reports whether the curve is flat from a capacity on that is not too large.
func (h *head) whole() bool { return !h.forgot && h.largest < h.most }

// points returns the curve for blocks of a size in tokens.
func (h *head) points(blockSize int) []point {
	points := []point{{}}
	now := point{}
	for distance, g := range h.gains[:min(h.largest+1, h.most)] {
		now.capacity = uint32(distance + 1)
		now.blocks += g.hits
		// Either all prompts end with a partial block, if not with a full one, or none has
		// an id for a partial block.
		now.tokens += g.hits*blockSize + min(g.isl-g.blocks*blockSize, 0)
		now.shares += g.shares
		points = append(points, now)
	}
	return points
}
