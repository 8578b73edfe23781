// Package tracetest is what tests and benchmarks of several packages need:
// [Published] finds a trace that others published, [Prompts] makes prompts that
// share their beginnings, with ids of any kind, and [Golden] compares what was
// written with a file.
package tracetest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Published returns the path of a published trace, and skips the test where
// that is not at hand. Such files are not part of the project; they are looked
// for in ../shared/traces, seen from its root.
func Published(tb testing.TB, name string) string {
	tb.Helper()
	path := filepath.Join(Root(tb), "..", "shared", "traces", name)
	if _, err := os.Stat(path); err != nil {
		tb.Skipf("the published trace is not here: %v", err)
	}
	return path
}

// Root is the folder of the project.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			tb.Fatal("no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}

// Naming is a way to name blocks: ID is the id of the n-th distinct block of a
// trace, from 0.
type Naming struct {
	Name string
	ID   func(n uint64) uint64
}

// Namings returns the ways in which traces name their blocks: by counting, by
// a hash, and some so and some so.
func Namings() []Naming {
	random := func(n uint64) uint64 { return rand.New(rand.NewPCG(3, n)).Uint64() }
	return []Naming{
		{"consecutive", func(n uint64) uint64 { return n }},
		{"random", random},
		{"mixed", func(n uint64) uint64 {
			if n>>12%2 == 0 {
				return n
			}
			return random(n)
		}},
	}
}

// Prompts makes prompts of 8 to 146 blocks, 77 on average, whose ids are
// chained to their prefix. The first half of each is the beginning of an
// earlier prompt. They are the same whenever the naming is. It also returns
// how many blocks they have together.
func Prompts(n int, naming Naming) (all [][]uint64, references int) {
	random := rand.New(rand.NewPCG(1, 2))
	next := uint64(0)
	for range n {
		var ids []uint64
		blocks := 8 + random.IntN(139)
		if len(all) > 0 {
			earlier := all[random.IntN(len(all))]
			ids = append(ids, earlier[:min(len(earlier), blocks/2)]...)
		}
		for len(ids) < blocks {
			ids = append(ids, naming.ID(next))
			next++
		}
		all = append(all, ids)
		references += blocks
	}
	return all, references
}

// Heap is the memory in use after a collection, in bytes.
func Heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
