package sessions

import (
	"moontide/synth/prefix"
)

// sharing is which blocks rows share, in their session and with others.
type sharing struct {
	*fitter
	parent []int   // turn of the same session with which a row shares most blocks
	known  []int   // these blocks, or 0
	number []int32 // of the prefix of a node that several sessions have; 0 for others
}

// findShared finds the blocks that the rows of sessions share, and the prefixes.
func (f *fitter) findShared(sessions [][]int) *sharing {
	s := &sharing{fitter: f, parent: make([]int, len(f.rows)), known: make([]int, len(f.rows)), number: make([]int32, f.prompts.Len()+1)}
	users := make([]int32, len(s.number))  // sessions that have a node
	latest := make([]int32, len(s.number)) // of them, from 1
	turns := make([]int32, len(s.number))  // its first turn with the node
	for number, rows := range sessions {
		for turn, i := range rows {
			known := f.rows[i].end
			for known != prefix.Root && latest[known] != int32(number)+1 {
				known = f.prompts.Parent(known)
			}
			if known != prefix.Root {
				s.parent[i], s.known[i] = int(turns[known]), f.prompts.Depth(known)
			}
			for n := f.rows[i].end; n != known; n = f.prompts.Parent(n) {
				users[n]++
				latest[n], turns[n] = int32(number)+1, int32(turn)
			}
		}
	}
	s.makePrefixes(users)
	return s
}

// makePrefixes makes the blocks that several sessions share runs, which end where
// prompts leave them.
func (s *sharing) makePrefixes(users []int32) {
	const several = 2
	ends := make([]bool, len(users)) // of runs
	children := make([]int32, len(users))
	isTemplate := func(n prefix.Node) bool { return max(s.uses[n], users[n]) >= s.minUses() }
	for n := prefix.Node(len(users) - 1); n != prefix.Root; n-- {
		if users[n] < several {
			continue
		}
		parent := s.prompts.Parent(n)
		children[parent]++
		if children[parent] > 1 || isTemplate(parent) != isTemplate(n) {
			ends[parent] = true
		}
	}
	tails := map[prefix.Node]int{}
	for i := range s.rows {
		r := &s.rows[i]
		n := r.end
		for users[n] == 1 {
			n = s.prompts.Parent(n)
		}
		ends[n] = true
		tail := r.isl - (s.prompts.Depth(n)-1)*s.Tokens
		if n == r.end && n != prefix.Root && !s.FullBlocksOnly && children[n] == 0 && tail > 0 && tail < s.Tokens {
			tails[n] = tail
		}
	}
	s.Prefixes = []prefixRun{{}}
	for n := prefix.Root + 1; int(n) < len(users); n++ {
		if users[n] < several || !ends[n] {
			continue
		}
		above := s.prompts.Parent(n)
		for s.number[above] == 0 && above != prefix.Root {
			above = s.prompts.Parent(above)
		}
		s.number[n] = int32(len(s.Prefixes))
		s.Prefixes = append(s.Prefixes, prefixRun{
			Parent: int(s.number[above]), Blocks: s.prompts.Depth(n) - s.prompts.Depth(above), Tail: tails[n], Template: isTemplate(n),
			depth: s.prompts.Depth(n),
		})
	}
}

// apply sets the prefix of a turn and what it shares with those before it in its session.
func (s *sharing) apply(t *turn, row, number int) {
	n := s.rows[row].end
	for n != prefix.Root && s.number[n] == 0 {
		n = s.prompts.Parent(n)
	}
	t.Prefix = int(s.number[n])
	t.Own = max(0, s.rows[row].isl-s.tokensOf(t.Prefix))
	if depth := s.Prefixes[t.Prefix].depth; s.known[row] > depth {
		t.Parent, t.Shared = number-s.parent[row], s.known[row]-depth
	}
}
