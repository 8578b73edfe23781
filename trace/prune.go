package trace

// Prune applies cut, which drops rows, and removes their ids from After of the rows
// that are kept. It counts these ids in removed. cut must neither hold nor reorder
// rows. Prune holds a few bytes for each id, and the rows from one on that waits for a
// later row up to that row.
func Prune(reqs Requests, cut func(Requests) Requests, removed *int) Requests {
	return func(yield func(Request, error) bool) {
		p := pruner{seen: map[string]bool{}, removed: removed}
		for r, err := range cut(Tap(reqs, p.see)) {
			if err != nil {
				p.flush(yield, true)
				yield(Request{}, err)
				return
			}
			if r.ID != "" {
				p.seen[r.ID] = true
			}
			p.held = append(p.held, r)
			if !p.flush(yield, false) {
				return
			}
		}
		p.flush(yield, true)
	}
}

type pruner struct {
	seen    map[string]bool // ids so far: whether their rows are kept
	held    []Request
	removed *int
}

// see notes the id of a row that may be dropped.
func (p *pruner) see(r Request) {
	if r.ID != "" {
		p.seen[r.ID] = false
	}
}

// flush yields the rows up to the first that waits for a row not read yet; at the end,
// all of them.
func (p *pruner) flush(yield func(Request, error) bool, end bool) bool {
	for len(p.held) > 0 {
		r := p.held[0]
		for _, id := range r.After {
			if _, seen := p.seen[id]; !seen && !end {
				return true
			}
		}
		p.held[0] = Request{}
		p.held = p.held[1:]
		if !yield(p.pruned(r), nil) {
			return false
		}
	}
	return true
}

func (p *pruner) pruned(r Request) Request {
	for i, id := range r.After {
		if p.seen[id] {
			continue
		}
		kept := append([]string{}, r.After[:i]...)
		for _, id := range r.After[i:] {
			if p.seen[id] {
				kept = append(kept, id)
			}
		}
		*p.removed += len(r.After) - len(kept)
		r.After = kept
		break
	}
	return r
}
