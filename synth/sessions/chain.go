package sessions

import "slices"

// blockRun is a run of consecutive block ids.
type blockRun struct {
	first  uint64
	blocks int
}

// turn is a request as long as it may be gone on from.
type turn struct {
	session  uint64
	template int
	runs     []blockRun // of its blocks after the template's
	blocks   int        // all of them
	shared   int        // of these, the blocks that the turn before it had
	isl, osl int

	number int     // 0 for a first turn
	at     float64 // ms
	gap    float64 // ms since the turn before; 0 for a first turn
	pace   float64 // ms, the moving mean of the gaps
}

// What a turn tells about how it is gone on from, as far as the trace tells it:
// how often it was gone on from already, ISL, OSL, its number, the tokens that
// were new in it, the gap before it, the pace, its time up to when the trace has
// settled, and its tokens after the template.
const turnKnown = 9

func (t *turn) known(order int, newTokens, settled, own float64) [turnKnown]float64 {
	return [turnKnown]float64{
		float64(min(order, 4)), float64(t.isl), float64(t.osl), float64(min(t.number, 64)), newTokens,
		t.gap, t.pace, min(t.at, settled), own,
	}
}

// follow makes t, whose time is known, the next turn of p.
func (t *turn) follow(p *turn) {
	t.number = p.number + 1
	t.gap = max(0, t.at-p.at)
	t.pace = t.gap
	if p.number > 0 {
		t.pace = (p.pace + t.gap) / 2
	}
}

// relation is how the prompt of a turn goes on from the one before.
type relation int

const (
	extends relation = iota // all full blocks of it, and more
	repeats                 // the same prompt
	returns                 // to where that one had left its own, and on from there
	edits                   // a part of it, and on from there
	joins                   // the same by another session, where rows say their session
	relations
)

var relationNames = [relations]string{"extend", "repeat", "return", "edit", "join"}

// firstBlocks returns the runs of the first blocks of them.
func firstBlocks(runs []blockRun, blocks int) []blockRun {
	var first []blockRun
	for _, r := range runs {
		if blocks <= 0 {
			break
		}
		r.blocks = min(r.blocks, blocks)
		blocks -= r.blocks
		first = append(first, r)
	}
	return slices.Clip(first)
}

// due is a turn that is to come.
type due struct {
	at       float64
	number   uint64 // earlier ones come first at the same time
	from     *turn
	since    float64 // when it was decided on
	order    int
	relation relation
	shared   int // blocks that it has in common with that one
	isl      int
	wait     float64 // ms until then, without the answer's if there are delays
	osl      int
}

func (d *due) before(e *due) bool {
	return d.at < e.at || d.at == e.at && d.number < e.number
}

// agenda is a heap of what is due, the earliest first.
type agenda []due

func (a *agenda) add(d due) {
	h := append(*a, d)
	i := len(h) - 1
	for i > 0 && d.before(&h[(i-1)/2]) {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = d
	*a = h
}

func (a *agenda) take() due {
	h := *a
	top, d := h[0], h[len(h)-1]
	h[len(h)-1] = due{}
	h = h[:len(h)-1]
	for i := 0; len(h) > 0; {
		child := 2*i + 1
		if child+1 < len(h) && h[child+1].before(&h[child]) {
			child++
		}
		if child >= len(h) || !h[child].before(&d) {
			h[i] = d
			break
		}
		h[i] = h[child]
		i = child
	}
	*a = h
	return top
}
