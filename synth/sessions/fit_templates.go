package sessions

import "moontide/synth/prefix"

const (
	// minBranches is the smallest number of prompts that diverge after a
	// template. Fewer can be one user's branches of a conversation.
	minBranches = 8
	// minSpread is the minimum part of the trace that half of them must span.
	minSpread = .25
)

// fitTemplates finds the nodes at which many prompts diverge from earlier ones,
// throughout the trace.
func (f *fitter) fitTemplates() {
	isTemplate := f.branchingNodes()
	f.addForks(isTemplate)
	for {
		f.listTemplates(isTemplate)
		f.link()
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
	for node, times := range left {
		n := len(times)
		if n >= minBranches && times[n*3/4]-times[n/4] >= minSpread*duration {
			branching[node] = true
		}
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
	for i := range f.rows {
		if r := &f.rows[i]; r.parent == none {
			f.templates[r.template].sessions++
		}
	}
	extended := make([]bool, len(f.templates))
	for _, t := range f.templates[1:] {
		extended[t.parent] = true
	}
	for node := prefix.Root + 1; int(node) < len(isTemplate); node++ {
		if t := f.templateOf[node]; isTemplate[node] && !extended[t] && f.templates[t].sessions < minRequests {
			isTemplate[node] = false
			pruned = true
		}
	}
	if !pruned {
		for i := range f.templates {
			if t := &f.templates[i]; t.sessions < minRequests {
				t.sessions = 0
			}
		}
	}
	return pruned
}
