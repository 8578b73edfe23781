package sessions

import (
	"slices"

	"moontide/synth"
)

// turn is a request of a session, kept as long as it may be continued.
type turn struct {
	session  uint64
	template int
	runs     []synth.BlockRun // of its blocks after the template's
	blocks   int              // all of them
	shared   int              // of these, the blocks shared with the turn before it
	isl, osl int

	number  int     // 0 for a first turn
	at      float64 // ms
	gap     float64 // ms since the turn before; 0 for a first turn
	meanGap float64 // ms, the moving mean of the gaps
}

// follow makes t, whose time is known, the next turn of p.
func (t *turn) follow(p *turn) {
	t.number = p.number + 1
	t.gap = max(0, t.at-p.at)
	t.meanGap = t.gap
	if p.number > 0 {
		t.meanGap = (p.meanGap + t.gap) / 2
	}
}

// relation is how the prompt of a turn continues the turn before.
type relation int

const (
	extends relation = iota // all its full blocks, and more
	repeats                 // the same prompt
	returns                 // what that one shared with its own predecessor, and more
	edits                   // a part of it, and more
	joins                   // the same by another session, where rows have session ids
	relations
)

var relationNames = [relations]string{"extend", "repeat", "return", "edit", "join"}

// firstBlocks returns the leading blocks of runs.
func firstBlocks(runs []synth.BlockRun, blocks int) []synth.BlockRun {
	var first []synth.BlockRun
	for _, r := range runs {
		if blocks <= 0 {
			break
		}
		r.Blocks = min(r.Blocks, blocks)
		blocks -= r.Blocks
		first = append(first, r)
	}
	return slices.Clip(first)
}
