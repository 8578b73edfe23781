package synth

import (
	"fmt"
	"math/rand/v2"

	"moontide/trace"
)

// Tree is a model of a trace by the tree method; see the package comment. Make
// one with [FitTree]. It does not change and may be used by any number of
// goroutines at once.
type Tree struct {
	size      trace.BlockSize
	irregular int

	nodes  []treeNode     // the core: the root, which has no blocks, then parents before children
	unique empirical[int] // blocks of a unique prompt
	tails  empirical[int] // tokens of a prompt's last block, 1 to a whole block

	outputs  empirical[int]   // OSL
	together empirical[int]   // requests that share a timestamp
	steps    empirical[int64] // nanoseconds between timestamps, at least 1
}

// treeNode is a run of shared blocks.
type treeNode struct {
	first  uint64 // id of its first block; the others have the ids that follow
	blocks int
	ways   empirical[int] // where requests go on to: an index in Tree.nodes, or
}

const (
	toUnique = -1 // out of the core, to blocks that are the request's own
	toEnd    = -2 // nowhere: the last block was the prompt's
)

// BlockSize returns the tokens of a block and how they are known.
func (t *Tree) BlockSize() trace.BlockSize { return t.size }

// Irregular returns the number of the source's rows whose ids were not one for
// each of ceil(ISL / block size) blocks. Few come from a careless source, and
// nearly all from one that rounds down; a wrong block size gives many, too.
func (t *Tree) Irregular() int { return t.irregular }

// Requests draws n requests, at least 1: the first at time 0, in order of
// arrival, with ids that are chained to their prefix. Ids from 0 are the
// core's; those after them are given out one by one to unique prompts, each
// once. Requests have context_len, the tokens of their core blocks, and
// unique_user_prompt_len, the rest of the ISL.
//
// The stream depends on the model, the seed and n alone, and a smaller n is the
// beginning of a larger. It can be ranged over repeatedly, also at once, and
// yields the same each time. It holds no more than the request at hand. Its
// only error is an n below 1.
func (t *Tree) Requests(seed uint64, n int) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		if n < 1 {
			yield(trace.Request{}, fmt.Errorf("drawing %d requests: at least 1 is needed", n))
			return
		}
		d := t.newDrawing(seed)
		for range n {
			if !yield(d.next(), nil) {
				return
			}
		}
	}
}

// drawing is one run through a model.
type drawing struct {
	*Tree
	arrivals, walk, uniqueLengths, tailLengths, outputLengths *rand.Rand

	now   float64 // nanoseconds: whole, so that sums are exact up to 2^53 (104 days)
	due   int     // requests still to come at now
	fresh uint64  // the next id that no block has
	path  []int   // core nodes of the request at hand
}

func (t *Tree) newDrawing(seed uint64) *drawing {
	d := &drawing{
		Tree:          t,
		arrivals:      stream(seed, "arrivals"),
		walk:          stream(seed, "walk"),
		uniqueLengths: stream(seed, "unique lengths"),
		tailLengths:   stream(seed, "tail lengths"),
		outputLengths: stream(seed, "output lengths"),
	}
	d.due = t.together.draw(d.arrivals)
	last := t.nodes[len(t.nodes)-1]
	d.fresh = last.first + uint64(last.blocks)
	return d
}

func (d *drawing) next() trace.Request {
	r := trace.Request{
		Timestamp:    trace.Some(d.arrive()),
		OutputLength: d.outputs.draw(d.outputLengths),
	}
	d.prompt(&r)
	return r
}

// arrive returns the next request's timestamp in milliseconds. A source that
// had only one timestamp has no steps, and time stands still.
func (d *drawing) arrive() float64 {
	if d.due == 0 {
		d.now += float64(d.steps.draw(d.arrivals))
		d.due = d.together.draw(d.arrivals)
	}
	d.due--
	return d.now / nsPerMs
}

// prompt gives the request its blocks and their lengths in tokens.
func (d *drawing) prompt(r *trace.Request) {
	shared, leaves := d.descend()
	// Both are drawn for every request, needed or not, so that the values that
	// a request gets do not depend on the walks before it.
	unique, tail := d.unique.draw(d.uniqueLengths), d.tails.draw(d.tailLengths)
	if !leaves {
		unique, tail = 0, d.size.Tokens // the core has whole blocks
	}
	r.HashIDs = make([]uint64, 0, shared+unique)
	for _, i := range d.path {
		node := &d.nodes[i]
		r.HashIDs = appendRun(r.HashIDs, node.first, node.blocks)
	}
	r.HashIDs = appendRun(r.HashIDs, d.fresh, unique)
	d.fresh += uint64(unique)

	context := shared * d.size.Tokens
	r.InputLength = (shared+unique-1)*d.size.Tokens + tail
	r.ContextLen = trace.Some(context)
	r.UniquePromptLen = trace.Some(r.InputLength - context)
}

// descend walks the core from its root, leaving the nodes on the way in path.
// It returns the number of their blocks, and whether the request goes on to a
// unique prompt.
func (d *drawing) descend() (blocks int, leaves bool) {
	d.path = d.path[:0]
	for at := 0; ; {
		switch way := d.nodes[at].ways.draw(d.walk); way {
		case toUnique:
			return blocks, true
		case toEnd:
			return blocks, false
		default:
			at = way
			blocks += d.nodes[at].blocks
			d.path = append(d.path, at)
		}
	}
}

// appendRun appends consecutive ids.
func appendRun(ids []uint64, first uint64, blocks int) []uint64 {
	for i := range uint64(blocks) {
		ids = append(ids, first+i)
	}
	return ids
}
