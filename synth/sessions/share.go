package sessions

import (
	"moontide/synth/prefix"
)

// findShared sets the blocks that rows share with others of their session, and returns the
// number of sessions that have each block.
func (f *fitter) findShared(sessions [][]int) (users []int32) {
	users = make([]int32, f.prompts.Len()+1)
	latest := make([]int32, len(users)) // session, from 1
	turns := make([]int32, len(users))  // its first turn with the block
	for number, rows := range sessions {
		for turn, i := range rows {
			r := &f.rows[i]
			known := f.longest(r.end, func(n prefix.Node) bool { return latest[n] == int32(number)+1 })
			r.parent, r.known = int(turns[known]), f.prompts.Depth(known)
			for n := r.end; n != known; n = f.prompts.Parent(n) {
				users[n]++
				latest[n], turns[n] = int32(number)+1, int32(turn)
			}
		}
	}
	return users
}

// makePrefixes makes the blocks that several sessions share runs: a block after which all
// prompts go on with the same one is in the run of that.
func (f *fitter) makePrefixes(users []int32) {
	isTemplate := func(n prefix.Node) bool { return max(f.uses[n], users[n]) >= f.minUses() }
	f.Prefixes = []prefixRun{{}}
	f.runs = make([]int32, len(users)) // of blocks, 0 for those of one session
	for n := prefix.Root + 1; int(n) < len(users); n++ {
		if users[n] < 2 {
			continue
		}
		above := f.prompts.Parent(n)
		if f.runs[n] = f.runs[above]; above == prefix.Root || f.prompts.Visits(above) > f.prompts.Visits(n) || isTemplate(above) != isTemplate(n) {
			f.Prefixes = append(f.Prefixes, prefixRun{Parent: int(f.runs[above]), Template: isTemplate(n)})
			f.runs[n] = int32(len(f.Prefixes) - 1)
		}
		run := &f.Prefixes[f.runs[n]]
		run.Blocks++
		run.depth = f.prompts.Depth(n)
	}
}

// turnOf returns the turn of a row, which has a number in its session.
func (f *fitter) turnOf(i, number int) turn {
	r := &f.rows[i]
	n := f.longest(r.end, func(n prefix.Node) bool { return f.runs[n] > 0 })
	t := r.turn
	t.Prefix = int(f.runs[n])
	for f.Prefixes[t.Prefix].depth > f.prompts.Depth(n) { // the row has more ids than blocks
		t.Prefix = f.Prefixes[t.Prefix].Parent
	}
	depth := f.Prefixes[t.Prefix].depth
	t.Own = r.isl - depth*f.Tokens
	if r.known > depth {
		t.Parent, t.Shared = number-r.parent, r.known-depth
	}
	return t
}
