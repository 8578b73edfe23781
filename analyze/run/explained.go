package run

import (
	"moontide/trace"
)

// explainer bounds the prompt tokens that a cache which began empty can have
// known, whatever the order in which requests came: a block is computed at
// least once, the cheapest time being where the fewest of its tokens are in a
// prompt.
type explainer struct {
	blockSize int
	least     []int32 // tokens of a block, by its number, where it had the fewest
	sum       int
	blind     bool // a prompt that its ids do not explain was sent
}

// add takes a prompt that was sent, its blocks numbered in order of their first
// use. One that is not counted may have filled the cache for others, but its own
// tokens are in no sum.
func (e *explainer) add(r trace.Request, numbers []uint32, counted bool) {
	if e.blockSize == 0 || r.HashIDs == nil {
		e.blind = true
		return
	}
	for i, n := range numbers {
		tokens := 0
		if counted {
			tokens = max(0, min(e.blockSize, r.InputLength-i*e.blockSize))
		}
		if int(n) >= len(e.least) {
			e.least = append(e.least, int32(tokens))
			continue
		}
		least := int(e.least[n])
		e.sum += max(tokens, least)
		e.least[n] = int32(min(tokens, least))
	}
}

func (e *explainer) tokens() trace.Opt[int] {
	if e.blind {
		return trace.Opt[int]{}
	}
	return trace.Some(e.sum)
}
