package sessions

import (
	"slices"

	"moontide/synth"
	"moontide/trace"
)

// turn is a request of a session that may still be continued.
type turn struct {
	session  uint64
	template int
	runs     []synth.BlockRun // blocks after the template's
	blocks   int              // number of all blocks
	shared   int              // number of blocks shared with the previous turn
	isl, osl int

	number  int     // 0 for a first turn
	at      float64 // ms
	phase   float64 // ms of the source, see sourceTime
	gap     float64 // ms since the previous turn; 0 for a first turn
	meanGap float64 // ms, the moving mean of the gaps

	reasoned       float64 // share of the answer that is reasoning
	reasonedBefore float64 // the same of the previous turn

	level    int         // 0, or of a sub-agent's turn: 1, 2, and so on
	calls    int         // number of sub-agents that it starts
	agent    *drawnAgent // nil if there are no sub-agents
	place    int         // number of rows of the agent before it
	followed bool        // a later turn of the agent follows it
}

// follow makes t, which has a time, the next turn of p.
func (t *turn) follow(p *turn) {
	t.number, t.level = p.number+1, p.level
	t.reasonedBefore = p.reasoned
	t.gap = max(0, t.at-p.at)
	t.meanGap = t.gap
	if p.number > 0 {
		t.meanGap = (p.meanGap*float64(p.number) + t.gap) / float64(t.number)
	}
}

// relation describes how the prompt of a turn continues the previous turn.
type relation int

const (
	extends relation = iota // all its full blocks, and more
	repeats                 // the same prompt
	returns                 // what the previous turn shared with its predecessor, and more
	edits                   // a part of it, and more
	joins                   // like edits, by another session, if rows have session ids
	relations
)

// delayKinds holds the kinds of delays by their numbers in a model.
var delayKinds = [...]trace.DelayKind{"", trace.Think, trace.Tool}

// kindOf returns the number of a kind of delay.
func kindOf(kind trace.DelayKind) int { return max(0, slices.Index(delayKinds[:], kind)) }

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
