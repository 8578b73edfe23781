package spec

import (
	"fmt"

	"moontide/synth"
	"moontide/trace/block"
	"moontide/trace/stats"
	"moontide/trace/yaml"
)

// maxPrefixes limits the shared prefixes of a spec, to bound memory.
const maxPrefixes = 1_000_000

// shared describes a tree of shared prefixes. Prompts choose a child at each
// level by its popularity.
type shared struct {
	levels  []level
	longest int // tokens of the longest path
}

type level struct {
	children   int // of each node one level up
	nodes      int // in total
	tokens     stats.Distribution
	popularity stats.Zipf
}

// shared reads one level, or a list of nested levels.
func (r *reader) shared(n *yaml.Node) *shared {
	items := []*yaml.Node{n}
	if n.Kind == yaml.List {
		items = n.Items
	}
	s := &shared{}
	nodes := 1
	for _, item := range items {
		f := r.fields(item, "shared")
		l := level{children: f.whole("count", 1, span{1, maxPrefixes})}
		nodes *= l.children
		if r.prefixes += nodes; r.prefixes > maxPrefixes {
			f.fail(f.place("count"), "more than %d shared prefixes (%d at this level)", maxPrefixes, nodes)
		}
		l.nodes = nodes
		l.tokens = f.distribution("tokens", r.tokens(1))
		exponent := f.number("zipf", 0, span{0, 100})
		l.popularity = stats.NewZipf(l.children, exponent)
		s.longest += int(stats.Highest(l.tokens))
		s.levels = append(s.levels, l)
	}
	return s
}

// prefixes holds the shared prefixes drawn from a seed. It is immutable.
type prefixes struct {
	*shared
	levels [][]prefix
}

// prefix is a node of the tree. A block belongs to the node in which it ends.
type prefix struct {
	tokens int32 // from the root to its end
	blocks int32 // blocks of this node
	first  uint64
}

// drawPrefixes draws the shared prefixes of all clients. Top-level ones are the
// same for every client.
func (s *Spec) drawPrefixes() {
	var common *prefixes
	if s.common != nil {
		common = s.draw(s.common, "shared")
	}
	for _, c := range s.clients {
		switch {
		case c.shared == nil:
		case c.shared == s.common:
			c.prefixes = common
		default:
			c.prefixes = s.draw(c.shared, "shared of "+c.name)
		}
	}
}

// draw draws the lengths of all prefixes and assigns them the next ids.
func (s *Spec) draw(of *shared, aspect string) *prefixes {
	p := &prefixes{shared: of}
	parents := []prefix{{}}
	for i, l := range of.levels {
		lengths := stats.NewIndexed(s.seed, fmt.Sprintf("%s level %d", aspect, i))
		nodes := make([]prefix, l.nodes)
		for k := range nodes {
			above := parents[k/l.children].tokens
			end := above + int32(l.tokens.Quantile(lengths.At(k, 0)))
			n := prefix{tokens: end, blocks: end/int32(s.blockSize) - above/int32(s.blockSize), first: s.sharedIDs}
			s.sharedIDs += uint64(n.blocks)
			nodes[k] = n
		}
		p.levels = append(p.levels, nodes)
		parents = nodes
	}
	return p
}

// choose appends the blocks of a path to runs and returns its tokens. It uses
// one uniform number per level.
func (p *prefixes) choose(runs []synth.BlockRun, uniform func(level int) float64) ([]synth.BlockRun, int) {
	node, tokens := 0, int32(0)
	for i, l := range p.shared.levels {
		node = node*l.children + l.popularity.At(uniform(i))
		n := p.levels[i][node]
		tokens = n.tokens
		runs = appendRun(runs, synth.BlockRun{First: n.first, Blocks: int(n.blocks)})
	}
	return runs, int(tokens)
}

// appendRun appends a run unless it is empty.
func appendRun(runs []synth.BlockRun, r synth.BlockRun) []synth.BlockRun {
	if r.Blocks == 0 {
		return runs
	}
	return append(runs, r)
}

// leastFitting is the smallest block size that is chosen to fit shared prefixes:
// that of most engines.
const leastFitting = 16

// fittingBlockSize returns the block size of a spec that sets none. Only whole
// blocks are shared, so it divides the lengths of all shared prefixes if that is
// possible: the usual size, or else the nearest from 16 to 512, smaller ones first.
func (s *Spec) fittingBlockSize(usual int) int {
	common := 0
	for _, c := range s.clients {
		if c.shared == nil {
			continue
		}
		for _, l := range c.shared.levels {
			tokens := int(stats.Highest(l.tokens))
			if int(stats.Lowest(l.tokens)) != tokens {
				return usual
			}
			common = divisor(common, tokens)
		}
	}
	if common == 0 {
		return usual
	}
	for size := min(common, usual); size >= leastFitting; size-- {
		if common%size == 0 {
			return size
		}
	}
	for size := usual; size <= min(common, block.DefaultSize); size++ {
		if common%size == 0 {
			return size
		}
	}
	return usual
}

// divisor returns the greatest common divisor.
func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// SharedTokens returns the mean length of the drawn shared prefixes, and the mean
// part of it that requests share, which is shorter if the block size does not
// divide the lengths. Both are 0 without shared prefixes.
func (s *Spec) SharedTokens() (drawn, shared float64) {
	seen, n := map[*prefixes]bool{}, 0.0
	for _, c := range s.clients {
		if c.prefixes == nil || seen[c.prefixes] {
			continue
		}
		seen[c.prefixes] = true
		for _, leaf := range c.prefixes.levels[len(c.prefixes.levels)-1] {
			drawn += float64(leaf.tokens)
			shared += float64(int(leaf.tokens) / s.blockSize * s.blockSize)
			n++
		}
	}
	return drawn / max(n, 1), shared / max(n, 1)
}
