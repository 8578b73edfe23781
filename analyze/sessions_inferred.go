package analyze

import "moontide/trace/block"

// maxChildren is the maximum number of different blocks that may follow the end of
// a prompt that has a next turn. Edits and branching agents create a few; a system
// prompt has one per conversation.
const maxChildren = 16

// turnFinder finds previous turns from block ids, in row order.
type turnFinder struct {
	*prefixCounter
	rows *rows
	size int // of a block, in tokens
	// turns has, for each row whose last full block was new with it, that block
	// and the latest row that ended with it.
	turns []turn
}

type turn struct {
	end    uint32
	latest int32 // or none
}

// sessions infers sessions from block ids; it returns nil if there are none.
func (c *prefixCounter) sessions(rows *rows, size block.Size) *Sessions {
	if c.total == 0 {
		return nil
	}
	f := turnFinder{prefixCounter: c, rows: rows, size: size.Tokens, turns: make([]turn, rows.len())}
	previous := make([]int32, rows.len())
	for i := range previous {
		f.turns[i].latest, previous[i] = none, outside
	}
	for i, runs := range c.runs.byRow {
		previous[i] = none
		if len(runs) != 1 { // not chained
			continue
		}
		if before := f.previous(runs[0]); before != none && rows.at(int(before)).isl < rows.at(i).isl {
			previous[i] = before
		}
		f.end(i, runs[0])
	}
	s := sessionsOf(rows, previous)
	s.Inferred = true
	return s
}

// previous walks up the path of a prompt to the first block at which an earlier
// turn ends, and returns the latest row that ended there, or none.
func (f *turnFinder) previous(r run) int32 {
	for r.seen > 0 {
		at := r.above
		r = f.runWith(at)
		if t := f.turns[r.row]; t.latest != none && t.end <= at {
			return t.latest
		}
	}
	return none
}

// end records the last full block of row i. If an earlier row introduced that
// block, it is recorded only if that row ended there too.
func (f *turnFinder) end(i int, r run) {
	full := min(int(f.rows.at(i).isl)/f.size, int(r.seen+r.fresh))
	if own := full - int(r.seen); own > 0 {
		if end := r.first + uint32(own-1); f.children(r, end) <= maxChildren {
			f.turns[i] = turn{end: end, latest: int32(i)}
		}
		return
	}
	if full == 0 {
		return
	}
	at := f.above(r.above, int(r.seen)-full)
	if t := &f.turns[f.runWith(at).row]; t.latest != none && t.end == at {
		t.latest = int32(i)
	}
}

// children returns the number of children of a block that was new in a run: the
// next one of the run, and the first of each run of new blocks below it.
func (c *prefixCounter) children(r run, number uint32) int {
	n := 0
	if s := c.repeatedBlock(number); s != nil {
		n = int(s.runs)
	}
	if number+1 < r.end() {
		n++
	}
	return n
}
