package main

import "slices"

// prompt is what a request of a check has.
type prompt struct {
	ids      []uint64 // blocks; equal leading ids are equal tokens
	isl, osl int
	before   int // tokens before the blocks, the same for all requests
	added    int // tokens that the server adds in all
}

// prompts returns the prompts of a trace, shorter by some tokens and with added ones.
func prompts(rows []row, shorter, before, added int) (all []prompt) {
	for _, r := range rows {
		all = append(all, prompt{r.HashIDs, r.InputLength - shorter, r.OutputLength, before, added})
	}
	return all
}

// common returns the number of leading tokens that two prompts share. A block that
// is only partly filled is a prefix of the full one.
func (p prompt) common(q prompt) int {
	n := 0
	for i, id := range p.ids {
		if i == len(q.ids) || q.ids[i] != id {
			break
		}
		n += traceBlock
	}
	n = min(n, p.isl, q.isl)
	if n == p.isl && n == q.isl {
		return p.length() // what follows the blocks is the same, too
	}
	return n + p.before
}

func (p prompt) length() int { return p.isl + p.added }

// vllmCached is vLLM's prefix cache: full blocks of 32 tokens, of which the last
// token of a prompt is never taken; least recently used blocks go first.
func vllmCached(o options, prompts []prompt) (cached []int) {
	const size = 32
	if o.blocks > 0 {
		return evicting(o.blocks-1, size, prompts) // one block is reserved
	}
	for i, p := range prompts {
		most := 0
		for _, q := range prompts[:i] {
			most = max(most, p.common(q))
		}
		cached = append(cached, min(most, p.length()-1)/size*size)
	}
	return cached
}

// block is a block of the KV cache: the one at index of the prompt of request.
// Blocks with generated tokens hold no prompt: their request is -1.
type block struct{ request, index int }

// evicting is the same with a list of free blocks: a request takes from its front
// what it does not find, and returns its full blocks to its back, the last one
// first. A block that is not full has nothing to find and returns to the front.
func evicting(blocks, size int, prompts []prompt) (cached []int) {
	free := make([]block, blocks)
	for i := range free {
		free[i].request = -1
	}
	for i, p := range prompts {
		var held []block
		for n := 0; (n+1)*size <= p.length()-1; n++ {
			at := -1
			for j, b := range free {
				if b.request >= 0 && b.index == n && p.common(prompts[b.request]) >= (n+1)*size {
					at = j
				}
			}
			if at < 0 {
				break
			}
			held = append(held, free[at])
			free = append(free[:at:at], free[at+1:]...)
		}
		cached = append(cached, len(held)*size)
		tokens := p.length() + p.osl - 1 // the last generated one has no KV
		for n := len(held); n*size < tokens; n++ {
			free = free[1:]
			b := block{i, n}
			if (n+1)*size > p.length() {
				b.request = -1
			}
			held = append(held, b)
		}
		full := held[:tokens/size]
		free = slices.Concat(held[len(full):], free)
		slices.Reverse(full)
		free = append(free, full...)
	}
	return cached
}

// llamacppCached is the cache of llama.cpp with one slot: what the prompt shares
// with the request before, except its last token. Before the first one was a probe,
// with the same template.
func llamacppCached(_ options, prompts []prompt) (cached []int) {
	for i, p := range prompts {
		n := p.before
		if i > 0 {
			n = min(p.common(prompts[i-1]), p.length()-1)
		}
		cached = append(cached, n)
	}
	return cached
}
