package spec

import (
	"fmt"

	"moontide/trace/stats"
)

// maxPrefixes bounds the shared prefixes of a description, and so memory.
const maxPrefixes = 1_000_000

// shared are the beginnings that prompts have in common: a tree whose levels
// have so many children a node each. Prompts choose a child at each level by
// its popularity.
type shared struct {
	levels []level
	most   int // tokens of the longest path
}

type level struct {
	children int // of each node above
	nodes    int // altogether
	tokens   stats.Distribution
	popular  stats.Zipf
}

// shared reads one level, or a list of levels within each other.
func (r *reading) shared(n *node) *shared {
	items := []*node{n}
	if n.kind == list {
		items = n.items
	}
	s := &shared{}
	nodes := 1
	for _, item := range items {
		f := r.fields(item, "shared", "count", "tokens", "zipf")
		l := level{children: f.whole("count", 1, span{1, maxPrefixes})}
		nodes *= l.children
		if r.prefixes += nodes; r.prefixes > maxPrefixes {
			f.fail(f.place("count"), "the description has more than %d shared prefixes: %d at this level alone", maxPrefixes, nodes)
			return s
		}
		l.nodes = nodes
		l.tokens = f.law("tokens", r.tokens(1))
		exponent := f.number("zipf", 0, span{0, 100})
		if r.failed() {
			return s
		}
		l.popular = stats.NewZipf(l.children, exponent)
		s.most += int(stats.Highest(l.tokens))
		s.levels = append(s.levels, l)
	}
	return s
}

// prefixes are the shared prefixes as one seed makes them. They do not change.
type prefixes struct {
	*shared
	blockSize int
	levels    [][]prefix
}

// prefix is a node of the tree. Its blocks are those that end within it: where
// a prefix ends within a block, that block belongs to what follows.
type prefix struct {
	tokens int32 // up to its end, from the root
	blocks int32 // of its own
	first  uint64
}

// grow draws the shared prefixes of all clients. Those given at the top are
// the same for all.
func (d *Spec) grow() {
	var common *prefixes
	if d.common != nil {
		common, d.sharedIDs = d.common.grow(d.seed, "shared", d.blockSize, d.sharedIDs)
	}
	for c := range d.clients() {
		switch {
		case c.shared == nil:
		case c.shared == d.common:
			c.prefixes = common
		default:
			c.prefixes, d.sharedIDs = c.shared.grow(d.seed, "shared of "+c.name, d.blockSize, d.sharedIDs)
		}
	}
}

// grow draws the lengths of all prefixes and gives them the ids from fresh on.
// It returns the id after the last.
func (s *shared) grow(seed uint64, aspect string, blockSize int, fresh uint64) (*prefixes, uint64) {
	p := &prefixes{shared: s, blockSize: blockSize}
	parents := []prefix{{}}
	for i, l := range s.levels {
		lengths := stats.NewIndexed(seed, fmt.Sprintf("%s level %d", aspect, i))
		nodes := make([]prefix, l.nodes)
		for k := range nodes {
			above := parents[k/l.children].tokens
			end := above + int32(l.tokens.Quantile(lengths.At(k, 0)))
			n := prefix{tokens: end, blocks: end/int32(blockSize) - above/int32(blockSize), first: fresh}
			fresh += uint64(n.blocks)
			nodes[k] = n
		}
		p.levels = append(p.levels, nodes)
		parents = nodes
	}
	return p, fresh
}

// choose appends the blocks of a path to runs and returns its tokens. One
// uniform number chooses at each level.
func (p *prefixes) choose(runs []run, uniform func(level int) float64) ([]run, int) {
	node, tokens := 0, int32(0)
	for i, l := range p.shared.levels {
		node = node*l.children + l.popular.At(uniform(i))
		n := p.levels[i][node]
		tokens = n.tokens
		runs = appendRun(runs, run{n.first, int(n.blocks)})
	}
	return runs, int(tokens)
}

// run is a run of consecutive block ids.
type run struct {
	first  uint64
	blocks int
}

func appendRun(runs []run, r run) []run {
	if r.blocks == 0 {
		return runs
	}
	return append(runs, r)
}
