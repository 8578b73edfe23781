package sessions

import "moontide/synth/prefix"

const (
	// minBranches is the smallest number of prompts that diverge after a
	// template. Fewer can be one user's branches of a conversation.
	minBranches = 8
	// minSpread is the minimum part of the trace that half of them must span, unless
	// at least minRegimeBranches and regimeShare of all prompts diverge there: a
	// template of one regime, such as a batch job.
	minSpread, regimeShare = .25, .01
	minRegimeBranches      = 100
)

// fitTemplates finds the nodes at which many prompts diverge from earlier ones,
// throughout the trace.
func (f *fitter) fitTemplates() {
	isTemplate := f.branchingNodes()
	f.addForks(isTemplate)
	for {
		f.listTemplates(isTemplate)
		f.link(f.rows)
		if !f.pruneTemplates(isTemplate) {
			break
		}
	}
	if f.file.FullBlocksOnly {
		return
	}
	for i := range f.rows { // find templates that are whole prompts
		r := &f.rows[i]
		if t := &f.templates[f.templateOf[r.end]]; t.depth > 0 && t.depth == r.blocks {
			t.tail = r.isl % f.size.Tokens
		}
	}
}

func (f *fitter) branchingNodes() []bool {
	nodes := f.prompts.Len() + 1
	seen := make([]bool, nodes)
	seen[prefix.Root] = true
	left := make(map[prefix.Node][]float64) // times at which prompts diverged
	for _, r := range f.rows {
		at := r.end
		for !seen[at] {
			seen[at] = true
			at = f.prompts.Parent(at)
		}
		left[at] = append(left[at], r.at)
	}
	branching := make([]bool, nodes)
	branching[prefix.Root] = true
	duration := f.rows[len(f.rows)-1].at
	if n := len(f.rows); f.rows[n/4].at == f.rows[n*3/4].at {
		duration = 0 // most requests come at once, and so do those that diverge
	}
	for node, times := range left {
		n := len(times)
		spread := times[n*3/4] - times[n/4]
		branching[node] = n >= minBranches && spread >= minSpread*duration ||
			n >= minRegimeBranches && float64(n) >= regimeShare*float64(len(f.rows))
	}
	return branching
}

// addForks adds the nodes at which templates diverge as templates.
func (f *fitter) addForks(isTemplate []bool) {
	below := make([]uint8, len(isTemplate)) // number of children with templates: 0, 1, or 2 for more
	for node := prefix.Node(len(isTemplate) - 1); node > prefix.Root; node-- {
		if below[node] > 1 {
			isTemplate[node] = true
		}
		if p := f.prompts.Parent(node); (isTemplate[node] || below[node] > 0) && below[p] < 2 {
			below[p]++
		}
	}
}

// listTemplates lists the templates, parents first, and sets templateOf.
func (f *fitter) listTemplates(isTemplate []bool) {
	f.templateOf = make([]int32, len(isTemplate))
	f.templates = []template{{}}
	for node := prefix.Root + 1; int(node) < len(isTemplate); node++ {
		above := f.templateOf[f.prompts.Parent(node)]
		f.templateOf[node] = above
		if isTemplate[node] {
			f.templateOf[node] = int32(len(f.templates))
			t := template{parent: int(above), depth: f.prompts.Depth(node)}
			t.blocks = t.depth - f.templates[above].depth
			f.templates = append(f.templates, t)
		}
	}
}

// pruneTemplates drops the longest templates that too few sessions start with,
// and reports whether there were any. Their requests may then continue each
// other.
func (f *fitter) pruneTemplates(isTemplate []bool) (pruned bool) {
	sessions := make([]int, len(f.templates))
	for i := range f.rows {
		if r := &f.rows[i]; r.parent == none {
			sessions[r.template]++
		}
	}
	extended := make([]bool, len(f.templates))
	for _, t := range f.templates[1:] {
		extended[t.parent] = true
	}
	for node := prefix.Root + 1; int(node) < len(isTemplate); node++ {
		if t := f.templateOf[node]; isTemplate[node] && !extended[t] && sessions[t] < minRequests {
			isTemplate[node] = false
			pruned = true
		}
	}
	return pruned
}
