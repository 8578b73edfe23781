package analyze

import "moontide/trace/block"

// run is a part of a prompt: seen blocks followed by new ones, which have
// consecutive numbers. A prefix-chained prompt is one run. Only with unchained ids
// can a seen block follow a new one, which starts another run.
type run struct {
	row         uint32
	seen, fresh int32
	// above is the last of the seen blocks and the parent of the new ones;
	// undefined if there are no seen blocks. first is the first new block, or that
	// of the next run.
	above, first uint32
}

// end is the number after the last new block.
func (r run) end() uint32 { return r.first + uint32(r.fresh) }

// has reports whether a block was new in the run.
func (r run) has(number uint32) bool { return number-r.first < uint32(r.fresh) }

// runs are those of all prompts, in row order: 20 bytes each.
type runs struct{ list block.List[run] }

// with returns the index of the run in which a block was new.
func (l *runs) with(number uint32) uint32 {
	return uint32(l.list.Search(func(r *run) bool { return r.first > number }) - 1)
}

// firstOf returns the index of the first run of a row, or of the next that has one.
func (l *runs) firstOf(row uint32) uint32 {
	return uint32(l.list.Search(func(r *run) bool { return r.row >= row }))
}

// byRow yields the rows with block ids and their runs, which are valid until the next.
func (l *runs) byRow(yield func(row int, own []run) bool) {
	var own []run
	for i := range l.list.Len() {
		r := *l.list.At(uint32(i))
		if len(own) > 0 && own[0].row != r.row {
			if !yield(int(own[0].row), own) {
				return
			}
			own = own[:0]
		}
		own = append(own, r)
	}
	if len(own) > 0 {
		yield(int(own[0].row), own)
	}
}
