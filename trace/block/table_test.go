package block

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// check numbers ids one by one and compares with a map.
func check(t interface{ Fatalf(string, ...any) }, table *Table, ids []uint64) {
	want := map[uint64]uint32{}
	for i, id := range ids {
		n, known := want[id]
		if !known {
			n = uint32(len(want))
			want[id] = n
		}
		got, isNew := table.Number(id)
		if got != n || isNew == known {
			t.Fatalf("use %d, id %d: number %d, new %v; want %d, %v", i, id, got, isNew, n, !known)
		}
		if table.Len() != len(want) {
			t.Fatalf("after use %d: %d distinct ids, want %d", i, table.Len(), len(want))
		}
	}
	if err := table.Err(); err != nil {
		t.Fatalf("%v", err)
	}
}

// idStream draws runs, steps backwards, repeats, neighbours of earlier ids and
// random numbers, with a bias to page borders and both ends of the range.
func idStream(t *rapid.T) []uint64 {
	ids := []uint64{0}
	for range rapid.IntRange(0, 60).Draw(t, "pieces") {
		start := rapid.OneOf(
			rapid.SampledFrom([]uint64{0, 1, pageSize - 1, pageSize, 5 * pageSize, 1 << 40, math.MaxUint64 - 2}),
			rapid.SampledFrom(ids),
			rapid.Uint64(),
		).Draw(t, "start")
		step := rapid.SampledFrom([]uint64{1, 1, 1, 2, pageSize, 1 << 50, math.MaxUint64}).Draw(t, "step")
		for i := range uint64(rapid.IntRange(1, 2*pageSize).Draw(t, "length")) {
			ids = append(ids, start+i*step)
		}
	}
	return ids
}

func TestTableAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := idStream(t)
		var table, appending Table
		check(t, &table, ids)
		var got []uint32
		for left := ids; len(left) > 0; {
			n := rapid.IntRange(1, len(left)).Draw(t, "row")
			got = appending.AppendNumbers(got, left[:n])
			left = left[n:]
		}
		for i, id := range ids {
			if want, _ := table.Number(id); got[i] != want {
				t.Fatalf("use %d, id %d: appended number %d, want %d", i, id, got[i], want)
			}
		}
	})
}

// A single id must be found again after another id opens its page.
func TestSingleIDJoinsPage(t *testing.T) {
	var table Table
	check(t, &table, []uint64{1003, 50, 1000, 1001, 1002, 1003, 1004, 50, 1003})
}

// hostile holds ids that would need a page for each id, or for each pair.
var hostile = map[string]func(i uint64) uint64{
	"far apart":  func(i uint64) uint64 { return i << 40 },
	"page apart": func(i uint64) uint64 { return i * pageSize },
	"triples":    func(i uint64) uint64 { return i/3<<20 + i%3*7 },
	"pairs":      func(i uint64) uint64 { return i/2<<20 + i%2 },
	"downwards":  func(i uint64) uint64 { return math.MaxUint64 - i },
	"random":     func(i uint64) uint64 { return rand.New(rand.NewPCG(1, i)).Uint64() },
}

func TestMemoryIsBoundedByDistinctIDs(t *testing.T) {
	const distinct = 100_000
	for name, id := range hostile {
		var table Table
		for i := range uint64(distinct) {
			table.Number(id(i))
		}
		if perID := float64(size(&table)) / distinct; perID > 48 {
			t.Errorf("%s: %.1f B a distinct id", name, perID)
		}
	}
	var table Table
	for i := range uint64(distinct) {
		table.Number(1<<33 + i)
	}
	if perID := float64(size(&table)) / distinct; perID > 5 {
		t.Errorf("consecutive: %.1f B a distinct id", perID)
	}
}

// size returns the memory of a table in bytes.
func size(t *Table) int {
	return t.pages.len*(4*pageSize+8) + 12*len(t.ids.entries)
}

// Keys that differ only in a few bits must not collide in the hash table.
func TestMixSpreads(t *testing.T) {
	for shift := range 48 {
		seen := map[uint64]bool{}
		for i := range uint64(1 << 12) {
			seen[Mix(i<<shift)%(1<<13)] = true
		}
		// Random hashing fills (1 - e^-0.5) / 0.5 of 4096 = 3223 on average.
		if len(seen) < 2900 {
			t.Errorf("4096 multiples of 2^%d fill %d of 8192 places", shift, len(seen))
		}
	}
}

func TestFull(t *testing.T) {
	table := Table{count: MaxLen - 1}
	if n, isNew := table.Number(5); n != MaxLen-1 || !isNew {
		t.Errorf("the last number is %d, new %v", n, isNew)
	}
	if err := table.Err(); err != nil {
		t.Errorf("a table that is just full: %v", err)
	}
	for _, id := range []uint64{6, 1 << 40, 6} { // 6 is in the page of 5, the other is a single id
		if n, isNew := table.Number(id); n != MaxLen || !isNew {
			t.Errorf("id %d beyond the limit: number %d, new %v", id, n, isNew)
		}
	}
	if got, want := table.AppendNumbers(nil, []uint64{5, 6, 7, 1 << 40}), []uint32{MaxLen - 1, MaxLen, MaxLen, MaxLen}; !slices.Equal(got, want) {
		t.Errorf("numbers of a full table %v, want %v", got, want)
	}
	if n, isNew := table.Number(5); n != MaxLen-1 || isNew {
		t.Errorf("a known id of a full table: number %d, new %v", n, isNew)
	}
	if err := table.Err(); !errors.Is(err, ErrFull) {
		t.Errorf("error %v", err)
	}
	if table.Len() != MaxLen {
		t.Errorf("%d distinct ids", table.Len())
	}
}
