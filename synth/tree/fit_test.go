package tree

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/stats"
)

func request(at float64, isl, osl int, ids ...uint64) trace.Request {
	if ids == nil {
		ids = []uint64{}
	}
	return trace.Request{Timestamp: trace.Some(at), InputLength: isl, OutputLength: osl, HashIDs: ids}
}

// example shares a prompt at three depths, in blocks of 4 tokens, with unique
// prompts of one and two blocks.
var example = []trace.Request{
	request(0, 14, 10, 7, 8, 9, 30),
	request(0, 8, 20, 7, 8),
	request(1000, 12, 30, 7, 8, 9),
	request(1500.25, 9, 20, 7, 40, 41),
}

func mustFit(t testing.TB, rows []trace.Request, blockSize int) *Model {
	t.Helper()
	tree, err := Fit(trace.FromSlice(rows), Options{BlockSize: blockSize})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// counts returns how often each value was observed.
func counts[T int | int64](d stats.Discrete[T]) map[T]int {
	m := make(map[T]int)
	for v, n := range d.All {
		m[v] += n
	}
	return m
}

// nodeCounts is a node that can be compared.
type nodeCounts struct {
	First  uint64
	Blocks int
	Ways   map[int]int
}

func describeNodes(t *Model) []nodeCounts {
	var nodes []nodeCounts
	for _, n := range t.nodes {
		nodes = append(nodes, nodeCounts{n.first, n.blocks, counts(n.next)})
	}
	return nodes
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestFitExample(t *testing.T) {
	tree := mustFit(t, example, 0)
	same(t, "block size", block.Size{Tokens: 4, How: block.Detected, Low: 4, High: 4}, tree.BlockSize())
	same(t, "irregular rows", 0, tree.Irregular())
	same(t, "core", []nodeCounts{
		{0, 0, map[int]int{1: 4}},
		{0, 1, map[int]int{2: 3, exitUnique: 1}},
		{1, 1, map[int]int{3: 2, exitEnd: 1}},
		{2, 1, map[int]int{exitUnique: 1, exitEnd: 1}},
	}, describeNodes(tree))
	same(t, "blocks of unique prompts", map[int]int{1: 1, 2: 1}, counts(tree.unique))
	same(t, "tokens of last blocks", map[int]int{1: 1, 2: 1, 4: 2}, counts(tree.tails))
	same(t, "output lengths", map[int]int{10: 1, 20: 2, 30: 1}, counts(tree.outputs))
	same(t, "requests at a timestamp", map[int]int{1: 2, 2: 1}, counts(tree.groups))
	same(t, "steps in ns", map[int64]int{1_000_000_000: 1, 500_250_000: 1}, counts(tree.gaps))
}

func TestFitIrregularRows(t *testing.T) {
	for name, c := range map[string]struct {
		rows      []trace.Request
		blockSize int // given
		irregular int
		core      []nodeCounts
		unique    map[int]int
		tails     map[int]int
	}{
		"no id for a last block that is not full, size detected": {
			// 25 tokens have 2 ids, and so have 29, 20 have 2, 7 have none.
			rows: []trace.Request{
				request(0, 25, 1, 1, 2), request(0, 29, 1, 1, 2), request(0, 20, 1, 1, 2),
				request(0, 39, 1, 1, 3, 4), request(0, 7, 1),
			},
			irregular: 4,
			core: []nodeCounts{
				{0, 0, map[int]int{1: 4, exitUnique: 1}},
				{0, 1, map[int]int{2: 3, exitUnique: 1}},
				{1, 1, map[int]int{exitUnique: 2, exitEnd: 1}},
			},
			unique: map[int]int{1: 3, 3: 1},
			tails:  map[int]int{5: 1, 9: 2, 10: 1, 7: 1},
		},
		"ids beyond the prompt": {
			rows: []trace.Request{
				request(0, 10, 1, 1, 2, 3), request(0, 11, 1, 1, 2), request(0, 0, 1, 1),
			},
			blockSize: 10, irregular: 2,
			core: []nodeCounts{
				{0, 0, map[int]int{1: 2, exitEnd: 1}},
				{0, 1, map[int]int{exitUnique: 1, exitEnd: 1}},
			},
			unique: map[int]int{1: 1},
			tails:  map[int]int{10: 1, 1: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree := mustFit(t, c.rows, c.blockSize)
			same(t, "tokens a block", 10, tree.BlockSize().Tokens)
			same(t, "irregular rows", c.irregular, tree.Irregular())
			same(t, "core", c.core, describeNodes(tree))
			same(t, "blocks of unique prompts", c.unique, counts(tree.unique))
			same(t, "tokens of last blocks", c.tails, counts(tree.tails))
		})
	}
}

func TestFitOrdersArrivals(t *testing.T) {
	tree := mustFit(t, []trace.Request{
		request(-2.01, 4, 1, 1), request(0.3, 4, 1, 2), request(0, 4, 1, 3),
		request(0.30000000000000004, 4, 1, 4), // as programs write 0.1 + 0.2
	}, 4)
	same(t, "requests at a timestamp", map[int]int{1: 2, 2: 1}, counts(tree.groups))
	same(t, "steps in ns", map[int64]int{300_000: 1, 2_010_000: 1}, counts(tree.gaps))
}

func TestFitErrors(t *testing.T) {
	broken := errors.New("line 3 is broken")
	late := request(0, 8, 1, 1, 2)
	late.Timestamp = trace.Opt[float64]{}
	unknown := trace.Request{Timestamp: trace.Some(0.), InputLength: 8}
	for name, c := range map[string]struct {
		source    trace.Requests
		blockSize int
		want      string
	}{
		"no requests":         {trace.FromSlice(nil), 4, "the source has no requests"},
		"no ids":              {trace.FromSlice([]trace.Request{example[0], unknown}), 4, "request 2: no block ids"},
		"no timestamp":        {trace.FromSlice([]trace.Request{late}), 4, "request 1: no timestamp"},
		"timestamp too large": {trace.FromSlice([]trace.Request{request(1e300, 8, 1, 1, 2)}), 4, "timestamp 1e+300 ms is out of range"},
		"negative ISL":        {trace.FromSlice([]trace.Request{request(0, -1, 1)}), 4, "input length -1 is not in 0.."},
		"huge block size":     {trace.FromSlice(example), math.MaxInt, "is not in 0.."},
		"no size fits":        {trace.FromSlice([]trace.Request{request(0, 8, 1, 1, 2), request(0, 800, 1, 1, 2)}), 0, "no one block size fits"},
		"broken source":       {func(yield func(trace.Request, error) bool) { yield(trace.Request{}, broken) }, 4, "line 3 is broken"},
	} {
		t.Run(name, func(t *testing.T) {
			tree, err := Fit(c.source, Options{BlockSize: c.blockSize})
			if err == nil || tree != nil {
				t.Fatalf("got %v and error %v", tree, err)
			}
			if !strings.HasPrefix(err.Error(), "fitting the tree method: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not say %q", err, c.want)
			}
			if name == "broken source" && !errors.Is(err, broken) {
				t.Errorf("error %q does not wrap the source's", err)
			}
		})
	}
}
