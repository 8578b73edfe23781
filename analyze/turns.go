package analyze

import "moontide/trace"

// Relations counts how the prompts of later turns relate to that of the turn before, by
// block ids. The turn before is the last one of the same session that the row waits
// for; see [trace.Graph].
type Relations struct {
	Extend    int // begin with the whole prompt before, and are longer
	Shortened int // are not longer: the context was compacted, or is another
	Rewritten int // are longer, but begin differently
	Unknown   int // one of the two has no block ids
	Parallel  int // wait for no earlier turn of their session
}

// tail is the end of a prompt that a later turn may extend.
type tail struct {
	row        int32 // from 1; 0 if there is none
	session    int32 // its number, or none
	blocks     int32
	last, prev uint32 // folded ids of its last two blocks
}

// fold shortens a block id: four bytes are enough to tell whether a prompt goes on.
func fold(id uint64) uint32 { return uint32(id ^ id>>32) }

func tailOf(r *trace.Request, row int, session int32) tail {
	t := tail{session: session, row: int32(row) + 1, blocks: int32(len(r.HashIDs))}
	if t.blocks > 0 {
		t.last = fold(r.HashIDs[t.blocks-1])
	}
	if t.blocks > 1 {
		t.prev = fold(r.HashIDs[t.blocks-2])
	}
	return t
}

// laterTurn is a turn and the one before. The block size, by which the last block of
// a prompt is full or not, is not known before the end of the trace.
type laterTurn struct {
	row, before int32
	blocks      int32 // of the turn before
	own         int32 // number of its own blocks
	sameLast    bool  // it has the last block of the turn before
	samePrev    bool  // and the one before that
}

// hasAt reports whether a prompt has a block at a place.
func hasAt(ids []uint64, place int32, folded uint32) bool {
	return place >= 0 && int(place) < len(ids) && fold(ids[place]) == folded
}

func (t tail) next(r *trace.Request, row int) laterTurn {
	return laterTurn{
		row: int32(row), before: t.row - 1, blocks: t.blocks, own: int32(len(r.HashIDs)),
		sameLast: hasAt(r.HashIDs, t.blocks-1, t.last), samePrev: hasAt(r.HashIDs, t.blocks-2, t.prev),
	}
}

// add counts a turn.
func (c *Relations) add(t *laterTurn, rows *rows, size int) {
	before := rows.at(int(t.before)).isl
	full := before / int32(size) // blocks
	switch {
	case rows.at(int(t.row)).isl <= before:
		c.Shortened++
	case t.blocks < full || t.own < full:
		c.Unknown++
	case full > 0 && full == t.blocks && !t.sameLast, full > 0 && full < t.blocks && !t.samePrev:
		c.Rewritten++
	default:
		c.Extend++
	}
}
