package tree

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"moontide/synth/prefix"
	"moontide/trace"
	"moontide/trace/stats"
)

// TreeOptions say how [FitTree] reads its source. The zero value detects what
// it needs.
type TreeOptions struct {
	// BlockSize is the number of tokens of a block, 1 to [trace.MaxLength];
	// 0 detects it from the rows.
	BlockSize int
}

// FitTree learns the tree method's model from all requests of a trace, which
// may be in any order. It needs memory for the distinct prefixes of the trace
// (32 bytes and more each) and for its requests (8 bytes each), and lets go of
// both when it returns.
//
// A prompt has ceil(ISL / block size) blocks. Rows whose ids say otherwise are
// read so that their ISL holds: tokens after the last id are a unique prompt,
// as in traces that give no id to a last block that is not full; ids for which
// no tokens are left do not count. [Tree.Irregular] tells how many rows were
// such. So the last block of every prompt holds 1 token to a whole block.
//
// It is an error if the source fails, has no requests, or has a row without
// ids, without a timestamp or with an ISL out of range; or if the block size is
// to be detected and no one size fits every row.
func FitTree(source trace.Requests, opts TreeOptions) (*Tree, error) {
	t, err := fitTree(source, opts)
	if err != nil {
		return nil, fmt.Errorf("fitting the tree method: %w", err)
	}
	return t, nil
}

func fitTree(source trace.Requests, opts TreeOptions) (*Tree, error) {
	if opts.BlockSize < 0 || opts.BlockSize > trace.MaxLength {
		return nil, fmt.Errorf("block size %d is not in 0..%d", opts.BlockSize, trace.MaxLength)
	}
	s := observations{
		given: opts.BlockSize, prompts: prefix.New(),
		outputs: make(map[int]int), arrivals: make(map[int64]int),
	}
	for r, err := range source {
		if err != nil {
			return nil, err
		}
		if err := s.add(r); err != nil {
			return nil, fmt.Errorf("request %d: %w", len(s.rows)+1, err)
		}
	}
	return s.model()
}

// observations are what is kept of a source while it is read.
type observations struct {
	given     int // block size, 0 if it is to be detected
	detector  trace.BlockDetector
	prompts   *prefix.Tree
	rows      []row
	irregular int // rows with more ids than blocks
	outputs   map[int]int
	arrivals  map[int64]int // requests at each timestamp, in nanoseconds
}

// row is one request: where its ids end and its ISL.
type row struct {
	end prefix.Node
	isl int32
}

func (s *observations) add(r trace.Request) error {
	if r.HashIDs == nil {
		return errors.New("no block ids to say what it shares")
	}
	if r.InputLength < 0 || r.InputLength > trace.MaxLength {
		return fmt.Errorf("input length %d is not in 0..%d", r.InputLength, trace.MaxLength)
	}
	at, err := nanoseconds(r.Timestamp)
	if err != nil {
		return err
	}
	ids := r.HashIDs
	if s.given == 0 {
		s.detector.Add(r)
	} else if blocks := blocksOf(r.InputLength, s.given); len(ids) > blocks {
		ids = ids[:blocks]
		s.irregular++
	}
	s.rows = append(s.rows, row{s.prompts.Add(ids), int32(r.InputLength)})
	s.outputs[r.OutputLength]++
	s.arrivals[at]++
	return nil
}

// nanoseconds returns a timestamp as a whole number, so that equal steps are
// equal and sums of steps exact, whatever the source's decimals.
func nanoseconds(timestamp trace.Opt[float64]) (int64, error) {
	if !timestamp.Set {
		return 0, errors.New("no timestamp")
	}
	ns := math.Round(timestamp.Value * nsPerMs)
	// Half of the range, so that no difference of two leaves it.
	if limit := float64(math.MaxInt64 / 2); !(-limit < ns && ns < limit) {
		return 0, fmt.Errorf("timestamp %v ms is out of range", timestamp.Value)
	}
	return int64(ns), nil
}

// nsPerMs converts between a trace's milliseconds and the model's nanoseconds.
const nsPerMs = 1_000_000

func blocksOf(isl, blockSize int) int { return (isl + blockSize - 1) / blockSize }

// model makes the model once everything has been observed.
func (s *observations) model() (*Tree, error) {
	if len(s.rows) == 0 {
		return nil, errors.New("the source has no requests")
	}
	size := trace.GivenBlockSize(s.given)
	if s.given == 0 {
		if size = s.detector.BlockSize(); size.Low > size.High {
			return nil, errors.New("no one block size fits every row; name the right one")
		}
	}
	t := &Tree{size: size, irregular: s.irregular, outputs: stats.NewDiscrete(s.outputs)}
	t.together, t.steps = s.pace()
	s.fitPrompts(t)
	return t, nil
}

// pace returns how many requests share a timestamp, and the nanoseconds from
// one timestamp to the next.
func (s *observations) pace() (together stats.Discrete[int], steps stats.Discrete[int64]) {
	groups, gaps := make(map[int]int), make(map[int64]int)
	times := slices.Sorted(maps.Keys(s.arrivals))
	for i, at := range times {
		groups[s.arrivals[at]]++
		if i > 0 {
			gaps[at-times[i-1]]++
		}
	}
	return stats.NewDiscrete(groups), stats.NewDiscrete(gaps)
}

// fitPrompts sorts every request by the core node at which it leaves the core,
// for a unique prompt of how many blocks, or ends.
func (s *observations) fitPrompts(t *Tree) {
	core := s.prompts.Core()
	ends := make([]int, len(core.Nodes))
	leaves := make([]int, len(core.Nodes))
	unique, tails := make(map[int]int), make(map[int]int)
	for _, r := range s.rows {
		isl := int(r.isl)
		blocks := blocksOf(isl, t.size.Tokens)
		if s.prompts.Depth(r.end) < blocks {
			t.irregular++
		}
		node := core.At(r.end)
		if past := blocks - core.Nodes[node].Depth; past > 0 {
			leaves[node]++
			unique[past]++
		} else {
			ends[node]++
		}
		if blocks > 0 {
			tails[isl-(blocks-1)*t.size.Tokens]++
		}
	}
	t.unique, t.tails = stats.NewDiscrete(unique), stats.NewDiscrete(tails)
	t.nodes = walkable(core, leaves, ends)
}

// walkable returns the core with the ways on from each node: first to its
// children, then to a unique prompt, then to its end.
func walkable(core *prefix.Core, leaves, ends []int) []treeNode {
	nodes := make([]treeNode, len(core.Nodes))
	var next uint64
	for i, run := range core.Nodes {
		nodes[i].first, nodes[i].blocks = next, run.Blocks
		next += uint64(run.Blocks)
		if i > 0 {
			nodes[run.Parent].ways.Add(i, run.Visits)
		}
	}
	for i := range nodes {
		nodes[i].ways.Add(toUnique, leaves[i])
		nodes[i].ways.Add(toEnd, ends[i])
		nodes[i].ways.Index()
	}
	return nodes
}
