package prompt

import (
	"math"
	"strconv"
	"testing"
)

func TestPutDecimal(t *testing.T) {
	check := func(id uint32) {
		var text [16]byte
		n := putDecimal(text[:], id)
		if want := strconv.FormatUint(uint64(id), 10) + ","; string(text[:n]) != want {
			t.Fatalf("%q, want %q", text[:n], want)
		}
	}
	for id := range uint32(1_100_000) { // covers all vocabularies, and more than the fast path
		check(id)
	}
	check(math.MaxUint32)
}

// appendDecimals reserves enough space for the longest ids.
func TestAppendDecimalsHasRoom(t *testing.T) {
	for _, high := range []uint32{2, 11, 101, 1_001, 10_001, 100_001, 1_000_001, math.MaxUint32} {
		a := newIDRange(high-1, high) // a single id, of full width
		for n := range 40 {
			want := n * len(strconv.FormatUint(uint64(high-1), 10)+",")
			if got := a.appendDecimals(nil, run{n: n}); len(got) != want {
				t.Errorf("%d ids of %d take %d bytes, want %d", n, high-1, len(got), want)
			}
		}
	}
}
