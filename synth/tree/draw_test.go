package tree

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"moontide/trace"
	"moontide/trace/format"
)

// stream draws n requests like the source's.
func stream(t rapid.TB, tree *Model, seed uint64, n int) trace.Requests {
	t.Helper()
	d, err := tree.Draw(seed, n, Shape{})
	if err != nil {
		t.Fatal(err)
	}
	return d.Requests()
}

func draw(t rapid.TB, tree *Model, seed uint64, n int) []trace.Request {
	t.Helper()
	rows, err := trace.Collect(stream(t, tree, seed, n))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// lines encodes rows as in a trace file.
func lines(rows []trace.Request) string {
	var b []byte
	for _, r := range rows {
		b = append(format.AppendRow(b, r), '\n')
	}
	return string(b)
}

func TestRequestsKeepDecimals(t *testing.T) {
	rows := []trace.Request{request(0.1, 4, 1, 1), request(0.2, 4, 1, 2), request(0.3, 4, 1, 3)}
	for i, r := range draw(t, mustFit(t, rows, 4), 1, 100) {
		if got, want := fmt.Sprint(r.Timestamp.Value), fmt.Sprint(float64(i)/10); got != want {
			t.Fatalf("row %d arrives at %s ms, want %s", i, got, want)
		}
	}
}

// source draws a trace with shared prefixes, ties and disorder in time, and,
// where the block size will be given, rows with too few or too many ids.
func source(t *rapid.T) (rows []trace.Request, blockSize int) {
	blockSize = rapid.IntRange(1, 9).Draw(t, "block size")
	irregular := rapid.Bool().Draw(t, "irregular")
	ids := []uint64{}
	fresh := rapid.Uint64().Draw(t, "first id")
	for range rapid.IntRange(1, 30).Draw(t, "requests") {
		ids = slices.Clone(ids[:rapid.IntRange(0, len(ids)).Draw(t, "kept")])
		for range rapid.IntRange(0, 4).Draw(t, "new") {
			ids = append(ids, fresh)
			fresh++ // may wrap round: ids are only names
		}
		isl := max(0, len(ids)*blockSize-rapid.IntRange(0, blockSize-1).Draw(t, "short"))
		if irregular {
			isl = rapid.IntRange(0, 60).Draw(t, "ISL")
		}
		at := float64(rapid.IntRange(-3, 9).Draw(t, "timestamp")) / 4
		rows = append(rows, request(at, isl, rapid.IntRange(0, 99).Draw(t, "OSL"), ids...))
	}
	return rows, blockSize
}

func TestRequestsAreWellFormed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, blockSize := source(t)
		tree, err := Fit(trace.FromSlice(rows), Options{BlockSize: blockSize})
		if err != nil {
			t.Fatal(err)
		}
		last := tree.nodes[len(tree.nodes)-1]
		shared := last.first + uint64(last.blocks) // ids below are the core's
		fresh, now := shared, 0.
		parents := make(map[uint64]uint64)
		first := true
		for r, err := range stream(t, tree, rapid.Uint64().Draw(t, "seed"), 100) {
			if err != nil {
				t.Fatal(err)
			}
			if first && r.Timestamp.Value != 0 || !r.Timestamp.Set || r.Timestamp.Value < now {
				t.Fatalf("timestamp %v after %v", r.Timestamp, now)
			}
			first, now = false, r.Timestamp.Value
			checkLengths(t, r, blockSize)
			fresh = checkIDs(t, r.HashIDs, r.ContextLen.Value/blockSize, shared, fresh, parents)
		}
	})
}

func checkLengths(t *rapid.T, r trace.Request, blockSize int) {
	blocks := len(r.HashIDs)
	if r.HashIDs == nil || r.InputLength < 0 ||
		r.InputLength <= (blocks-1)*blockSize || r.InputLength > blocks*blockSize {
		t.Fatalf("%d tokens in %v, blocks of %d", r.InputLength, r.HashIDs, blockSize)
	}
	context, unique := r.ContextLen, r.UniquePromptLen
	if !context.Set || !unique.Set || context.Value+unique.Value != r.InputLength ||
		context.Value%blockSize != 0 || unique.Value < 0 {
		t.Fatalf("context %v and unique %v of %d tokens", context, unique, r.InputLength)
	}
}

// checkIDs checks that the first blocks are from the core, that the others are new
// and consecutive, and that every id always has the same parent.
func checkIDs(t *rapid.T, ids []uint64, core int, shared, fresh uint64, parents map[uint64]uint64) uint64 {
	const root = 1 << 63
	parent := uint64(root)
	for i, id := range ids {
		if i < core && id >= shared {
			t.Fatalf("block %d of %v is context but not one of the %d core blocks", i, ids, shared)
		}
		if i >= core {
			if id != fresh {
				t.Fatalf("block %d of %v is unique, but is not the next id %d", i, ids, fresh)
			}
			fresh++
		}
		if known, ok := parents[id]; ok && known != parent {
			t.Fatalf("id %d follows %d and %d", id, known, parent)
		}
		parents[id] = parent
		parent = id
	}
	return fresh
}

func TestRequestsDependOnTheSeedAlone(t *testing.T) {
	tree := mustFit(t, chats(30), 512)
	once, again, fewer := draw(t, tree, 7, 50), draw(t, tree, 7, 50), draw(t, tree, 7, 20)
	if lines(once) != lines(again) || lines(once[:20]) != lines(fewer) || lines(once) == lines(draw(t, tree, 8, 50)) {
		t.Errorf("seed 7 draws\n%s\nand\n%s, of 20 rows\n%s", lines(once), lines(again), lines(fewer))
	}
}
