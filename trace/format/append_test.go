package format

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"moontide/trace"
)

// spelled formats ids one by one, as appendIDs must.
func spelled(ids []uint64) string {
	var words []string
	for _, id := range ids {
		words = append(words, strconv.FormatUint(id, 10))
	}
	return strings.Join(words, ", ")
}

// runs draws mostly consecutive ids of every width.
func runs(t *rapid.T) []uint64 {
	var ids []uint64
	for range rapid.IntRange(0, 5).Draw(t, "runs") {
		width := rapid.IntRange(0, 19).Draw(t, "digits")
		first := uint64(math.Pow10(width)) - rapid.Uint64Range(0, 30).Draw(t, "before a further digit") // may wrap around
		if rapid.Bool().Draw(t, "anywhere") {
			first = rapid.Uint64().Draw(t, "first")
		}
		for i := range rapid.Uint64Range(1, 130).Draw(t, "length") {
			ids = append(ids, first+i)
		}
	}
	return ids
}

func TestAppendIDsSpellsEveryID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := runs(t)
		before := rapid.SampledFrom([]string{"", `"hash_ids": [`}).Draw(t, "before")
		spare := rapid.IntRange(0, 100).Draw(t, "spare capacity")
		dst := append(make([]byte, 0, len(before)+spare), before...)
		if got, want := string(appendIDs(dst, ids)), before+spelled(ids); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	})
}

func TestAppendIDsAtEveryWidth(t *testing.T) {
	for width := range 20 {
		border := uint64(math.Pow10(width))
		var ids []uint64
		for i := range uint64(250) {
			ids = append(ids, border-125+i) // for small widths from below 0, that is the largest ids
		}
		if got, want := string(appendIDs(nil, ids)), spelled(ids); got != want {
			t.Errorf("around %d: got\n%s\nwant\n%s", border, got, want)
		}
	}
}

// AppendRow must not change the bytes before the row, or those beyond the slice's
// capacity.
func TestAppendRowStaysInItsPlace(t *testing.T) {
	array := []byte(strings.Repeat("x", 4096))
	row := trace.Request{HashIDs: []uint64{98, 99, 100, 101}, ContextLen: trace.Some(4)}
	const limit = 40
	AppendRow(array[:8:limit], row)
	if want := strings.Repeat("x", 8); string(array[:8]) != want {
		t.Errorf("before the row stands %q", array[:8])
	}
	if i := slices.IndexFunc(array[limit:], func(c byte) bool { return c != 'x' }); i >= 0 {
		t.Errorf("byte %d behind the capacity is %q", i, array[limit+i])
	}
}

func BenchmarkAppendRow(b *testing.B) {
	for _, run := range []int{1, 4, 16, 64} {
		for _, first := range []uint64{1_000, 1_000_000, 1 << 60} {
			b.Run(fmt.Sprintf("run=%d/first=%d", run, first), func(b *testing.B) {
				r := trace.Request{Timestamp: trace.Some(3000.), InputLength: 39_000, OutputLength: 350, ContextLen: trace.Some(1), UniquePromptLen: trace.Some(2)}
				for i := range uint64(64) {
					r.HashIDs = append(r.HashIDs, first+i+i/uint64(run)*7)
				}
				var row []byte
				b.ReportAllocs()
				for b.Loop() {
					row = AppendRow(row[:0], r)
				}
				b.SetBytes(int64(len(row)))
			})
		}
	}
}
