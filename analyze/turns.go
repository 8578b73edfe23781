package analyze

import "moontide/trace/block"

// relation returns how the prompt of a row relates to that of the row before in its
// session. A block has size tokens.
func (c *prefixCounter) relation(rows *rows, row, before, size int) block.Relation {
	return block.RelationOf(int(rows.at(row).isl), int(rows.at(before).isl), size, func(index int) (same, known bool) {
		last, known := c.blockAt(uint32(before), index)
		own, ownKnown := c.blockAt(uint32(row), index)
		return own == last, known && ownKnown
	})
}

// blockAt returns the number of the block at an index, from 0, of a row's prompt, and
// whether it has one.
func (c *prefixCounter) blockAt(row uint32, index int) (number uint32, ok bool) {
	for i := c.runs.firstOf(row); int(i) < c.runs.list.Len(); i++ {
		r := *c.runs.list.At(i)
		switch {
		case r.row != row:
			return 0, false
		case index < int(r.seen):
			return c.above(r.above, int(r.seen)-1-index), true
		case index < int(r.seen+r.fresh):
			return r.first + uint32(index) - uint32(r.seen), true
		}
		index -= int(r.seen + r.fresh)
	}
	return 0, false
}

// above returns the block that is a number of blocks before another in chained prompts.
func (c *prefixCounter) above(number uint32, up int) uint32 {
	for r := c.runWith(number); up > int(number-r.first) && r.seen > 0; r = c.runWith(number) {
		up -= int(number-r.first) + 1
		number = r.above
	}
	return number - uint32(up)
}
