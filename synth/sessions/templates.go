package sessions

import (
	"moontide/synth/prefix"
)

// template is a shared beginning of prompts, such as a system prompt or a
// document that many ask about. Templates are a tree: a longer one goes on from
// a shorter one.
type template struct {
	parent int
	blocks int // its own, after its parent's
	starts int // sessions that begin with it and with no longer one; at least minCell, or 0

	// tail is 0, or the tokens of a last block that is not full: the template is
	// a whole prompt then.
	tail int

	depth int    // blocks with those of its parents
	first uint64 // id of its own first block; the others follow
}

const (
	// minBranches is how many prompts part from each other after a template,
	// at least. Fewer can be one user's ways to go on with one conversation.
	minBranches = 8
	// These have to be spread over the trace: half of them over this part of it.
	minSpread = .25
)

// findTemplates looks for nodes at which many prompts leave what was seen
// before, all the time.
func (f *fitter) findTemplates() {
	nodes := f.prompts.Len() + 1
	seen := make([]bool, nodes)
	seen[prefix.Root] = true
	left := make(map[prefix.Node][]float64) // when prompts parted from here
	for _, r := range f.rows {
		at := r.end
		for !seen[at] {
			seen[at] = true
			at = f.prompts.Parent(at)
		}
		left[at] = append(left[at], r.at)
	}
	is := make([]bool, nodes)
	is[prefix.Root] = true
	span := f.rows[len(f.rows)-1].at
	for node, times := range left {
		n := len(times)
		if n >= minBranches && times[n*3/4]-times[n/4] >= minSpread*span {
			is[node] = true
		}
	}
	f.addForks(is)
	f.number(is)
	for f.prune(is) {
		f.number(is)
	}
	f.findTails()
}

// findTails marks the templates that are whole prompts.
func (f *fitter) findTails() {
	if f.fullOnly {
		return
	}
	for i := range f.rows {
		r := &f.rows[i]
		if t := &f.templates[f.under[r.end]]; t.depth > 0 && t.depth == r.blocks {
			t.tail = r.isl % f.size.Tokens
		}
	}
}

// addForks makes templates of the nodes at which templates part.
func (f *fitter) addForks(is []bool) {
	ways := make([]uint8, len(is)) // to templates: 0, 1 or 2 for more
	for node := prefix.Node(len(is) - 1); node > prefix.Root; node-- {
		if ways[node] > 1 {
			is[node] = true
		}
		if p := f.prompts.Parent(node); (is[node] || ways[node] > 0) && ways[p] < 2 {
			ways[p]++
		}
	}
}

// number lists the templates, parents first, and finds the one that each node
// is under.
func (f *fitter) number(is []bool) {
	f.under = make([]int32, len(is))
	f.templates = []template{{}}
	for node := prefix.Root + 1; int(node) < len(is); node++ {
		above := f.under[f.prompts.Parent(node)]
		f.under[node] = above
		if is[node] {
			f.under[node] = int32(len(f.templates))
			t := template{parent: int(above), depth: f.prompts.Depth(node)}
			t.blocks = t.depth - f.templates[above].depth
			f.templates = append(f.templates, t)
		}
	}
}

// prune drops the longest templates that too few sessions begin with, and tells
// whether there were any. Their requests may go on from each other then.
func (f *fitter) prune(is []bool) bool {
	f.link()
	for i := range f.rows {
		if r := &f.rows[i]; r.parent == none {
			f.templates[r.template].starts++
		}
	}
	longer := make([]int, len(f.templates))
	for _, t := range f.templates[1:] {
		longer[t.parent]++
	}
	pruned := false
	for node := prefix.Root + 1; int(node) < len(is); node++ {
		if t := f.under[node]; is[node] && longer[t] == 0 && f.templates[t].starts < minCell {
			is[node] = false
			pruned = true
		}
	}
	if !pruned {
		for i := range f.templates {
			if t := &f.templates[i]; t.starts < minCell {
				t.starts = 0
			}
		}
	}
	return pruned
}
