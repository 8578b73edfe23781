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
