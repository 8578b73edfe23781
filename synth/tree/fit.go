package tree

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"moontide/synth/prefix"
	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/stats"
)

// Options configures [Fit]. The zero value detects what it needs.
type Options struct {
	// BlockSize is the number of tokens per block, 1 to [trace.MaxLength];
	// 0 detects it from the rows.
	BlockSize int
}

// Fit learns a model from all requests of a trace, in any order. It uses at
// least 32 bytes for each distinct prefix of the trace and 8 bytes for each
// request while it runs.
//
// A prompt has ceil(ISL / block size) blocks. Where a row's ids disagree, tokens
// after the last id are a unique prompt and surplus ids are ignored;
// [Model.Irregular] counts such rows.
//
// Fit fails if the source fails or has no requests, if a row has no ids, no
// timestamp or an ISL out of range, or if no single block size fits every row.
func Fit(source trace.Requests, opts Options) (_ *Model, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("fitting the tree method: %w", err)
		}
	}()
	if opts.BlockSize < 0 || opts.BlockSize > trace.MaxLength {
		return nil, fmt.Errorf("block size %d is not in 0..%d", opts.BlockSize, trace.MaxLength)
	}
	f := fitter{
		blockSize: opts.BlockSize, prompts: prefix.New(),
		outputs: make(map[int]int), arrivals: make(map[int64]int),
	}
	for r, err := range source {
		if err != nil {
			return nil, err
		}
		if err := f.add(r); err != nil {
			return nil, fmt.Errorf("request %d: %w", len(f.rows)+1, err)
		}
	}
	return f.model()
}

// fitter collects statistics of a source while reading it.
type fitter struct {
	blockSize int // 0: detect it
	detector  block.SizeDetector
	prompts   *prefix.Tree
	rows      []row
	irregular int // rows with more ids than blocks
	outputs   map[int]int
	arrivals  map[int64]int // requests at each timestamp, in nanoseconds
}

// row is a request's last node and its ISL.
type row struct {
	end prefix.Node
	isl int32
}

func (f *fitter) add(r trace.Request) error {
	if r.HashIDs == nil {
		return errors.New("no block ids, so its shared prefixes are unknown")
	}
	if r.InputLength < 0 || r.InputLength > trace.MaxLength {
		return fmt.Errorf("input length %d is not in 0..%d", r.InputLength, trace.MaxLength)
	}
	at, err := nanoseconds(r.Timestamp)
	if err != nil {
		return err
	}
	ids := r.HashIDs
	if f.blockSize == 0 {
		f.detector.Add(r.InputLength, r.HashIDs)
	} else if blocks := blocksOf(r.InputLength, f.blockSize); len(ids) > blocks {
		ids = ids[:blocks]
		f.irregular++
	}
	f.rows = append(f.rows, row{f.prompts.Add(ids), int32(r.InputLength)})
	f.outputs[r.OutputLength]++
	f.arrivals[at]++
	return nil
}

// nanoseconds returns a timestamp as a whole number, so that equal gaps are
// equal and their sums exact, regardless of the source's decimals.
func nanoseconds(timestamp trace.Opt[float64]) (int64, error) {
	if !timestamp.Set {
		return 0, errors.New("no timestamp")
	}
	ns := math.Round(timestamp.Value * nsPerMs)
	// Half of the range, so that differences do not overflow.
	if limit := float64(math.MaxInt64 / 2); !(-limit < ns && ns < limit) {
		return 0, fmt.Errorf("timestamp %v ms is out of range", timestamp.Value)
	}
	return int64(ns), nil
}

const nsPerMs = 1_000_000

func blocksOf(isl, blockSize int) int { return (isl + blockSize - 1) / blockSize }

// model builds the model after all rows have been added.
func (f *fitter) model() (*Model, error) {
	if len(f.rows) == 0 {
		return nil, errors.New("the source has no requests")
	}
	size := block.GivenSize(f.blockSize)
	if f.blockSize == 0 {
		if size = f.detector.Size(); size.Low > size.High {
			return nil, errors.New("no one block size fits every row; name the right one")
		}
	}
	m := &Model{size: size, irregular: f.irregular, outputs: stats.NewDiscrete(f.outputs)}
	f.fitArrivals(m)
	f.fitPrompts(m)
	return m, nil
}

func (f *fitter) fitArrivals(m *Model) {
	groups, gaps := make(map[int]int), make(map[int64]int)
	times := slices.Sorted(maps.Keys(f.arrivals))
	for i, at := range times {
		groups[f.arrivals[at]]++
		if i > 0 {
			gaps[at-times[i-1]]++
		}
	}
	m.groups, m.gaps = stats.NewDiscrete(groups), stats.NewDiscrete(gaps)
}

// fitPrompts counts the core nodes at which requests end or leave for a unique
// prompt, and the lengths of the unique prompts.
func (f *fitter) fitPrompts(m *Model) {
	core := f.prompts.Core()
	ends := make([]int, len(core.Nodes))
	leaves := make([]int, len(core.Nodes))
	unique, tails := make(map[int]int), make(map[int]int)
	for _, r := range f.rows {
		isl := int(r.isl)
		blocks := blocksOf(isl, m.size.Tokens)
		if f.prompts.Depth(r.end) < blocks {
			m.irregular++
		}
		at := core.At(r.end)
		if beyond := blocks - core.Nodes[at].Depth; beyond > 0 {
			leaves[at]++
			unique[beyond]++
		} else {
			ends[at]++
		}
		if blocks > 0 {
			tails[isl-(blocks-1)*m.size.Tokens]++
		}
	}
	m.unique, m.tails = stats.NewDiscrete(unique), stats.NewDiscrete(tails)
	m.nodes = nodesOf(core, leaves, ends)
}

// nodesOf returns the core's nodes. The outcomes of a node are its children,
// then a unique prompt, then the end; seeded draws depend on this order.
func nodesOf(core *prefix.Core, leaves, ends []int) []node {
	nodes := make([]node, len(core.Nodes))
	var id uint64
	for i, run := range core.Nodes {
		nodes[i].first, nodes[i].blocks = id, run.Blocks
		id += uint64(run.Blocks)
		if i > 0 {
			nodes[run.Parent].next.Add(i, run.Visits)
		}
	}
	for i := range nodes {
		nodes[i].next.Add(exitUnique, leaves[i])
		nodes[i].next.Add(exitEnd, ends[i])
		nodes[i].next.Index()
	}
	return nodes
}
