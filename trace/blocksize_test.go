package trace_test

import (
	"testing"

	"pgregory.net/rapid"

	"moontide/trace"
)

// sized draws rows with blocks of a size. A partial last block may have an id or
// not.
func sized(t *rapid.T, size int, floor bool) *trace.BlockDetector {
	d := &trace.BlockDetector{}
	for _, isl := range rapid.SliceOfN(rapid.IntRange(0, 4*size), 0, 20).Draw(t, "isl") {
		n := (isl + size - 1) / size
		if floor {
			n = isl / size
		}
		d.Add(trace.Request{InputLength: isl, HashIDs: make([]uint64, n)})
	}
	return d
}

// Traces of one block size never disagree by either rule; those of very different
// sizes do once their rows show it.
func TestDisagrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 600).Draw(t, "size")
		a, b := sized(t, size, rapid.Bool().Draw(t, "floor a")), sized(t, size, rapid.Bool().Draw(t, "floor b"))
		known := trace.KnownBlocks(size)
		if a.Disagrees(b) || a.Disagrees(&known) || known.Disagrees(b) {
			t.Fatalf("of one size: %+v and %+v", a, b)
		}
	})
	of := func(isl, ids int) *trace.BlockDetector {
		d := &trace.BlockDetector{}
		d.Add(trace.Request{InputLength: isl, HashIDs: make([]uint64, ids)})
		return d
	}
	odd := of(100, 9)
	odd.Add(trace.Request{InputLength: 100, HashIDs: make([]uint64, 1)})
	known := trace.KnownBlocks(16)
	known.Add(trace.Request{InputLength: 100, HashIDs: make([]uint64, 1)}) // ignored: the size is known
	for name, tc := range map[string]struct {
		a, b *trace.BlockDetector
		want bool
	}{
		"16 and 512":        {of(160, 10), of(5120, 10), true},
		"known and 512":     {&known, of(5120, 10), true},
		"known and 16":      {&known, of(160, 10), false},
		"no rows":           {&trace.BlockDetector{}, of(160, 10), false},
		"empty lists":       {of(5, 0), &known, false},
		"of no one size":    {odd, &known, false},
		"ceil of the other": {of(100, 6), of(105, 6), false}, // 17..20, or floor, 15..16 and 16..17
	} {
		if tc.a.Disagrees(tc.b) != tc.want || tc.b.Disagrees(tc.a) != tc.want {
			t.Errorf("%s: not %v", name, tc.want)
		}
	}
	if got := known.BlockSize(); got != trace.GivenBlockSize(16) {
		t.Errorf("known size %v", got)
	}
}
