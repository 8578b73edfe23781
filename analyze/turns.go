package analyze

// Relations counts how the prompts of later turns relate to that of the turn before, the
// row before of the same session, by block ids, which have to be chained to their prefixes.
type Relations struct {
	Extend    int // begin with the whole prompt before, and are longer
	Shortened int // are not longer: the context was compacted, or is another
	Rewritten int // are longer, but begin differently
	Unknown   int // one of the two has no block ids
}

// add counts a turn and the one before. A block has size tokens.
func (c *Relations) add(prompts *prefixCounter, rows *rows, row, before, size int) {
	isl := rows.at(before).isl
	full := int(isl) / size // blocks
	if rows.at(row).isl <= isl {
		c.Shortened++
		return
	}
	if full == 0 {
		c.Extend++
		return
	}
	// The last full block stands for all before it.
	last, known := prompts.blockAt(uint32(before), full-1)
	own, ownKnown := prompts.blockAt(uint32(row), full-1)
	switch {
	case !known || !ownKnown:
		c.Unknown++
	case own != last:
		c.Rewritten++
	default:
		c.Extend++
	}
}

// blockAt returns the number of the block at a place, from 0, of a row's prompt, and
// whether it has one.
func (c *prefixCounter) blockAt(row uint32, place int) (number uint32, ok bool) {
	for i := c.runs.firstOf(row); int(i) < c.runs.list.Len(); i++ {
		r := *c.runs.list.At(i)
		switch {
		case r.row != row:
			return 0, false
		case place < int(r.seen):
			return c.above(r.above, int(r.seen)-1-place), true
		case place < int(r.seen+r.fresh):
			return r.first + uint32(place) - uint32(r.seen), true
		}
		place -= int(r.seen + r.fresh)
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
