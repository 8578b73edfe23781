package block

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestSize(t *testing.T) {
	type prompt struct {
		isl int
		ids []uint64
	}
	row := func(isl, ids int) prompt { return prompt{isl, make([]uint64, ids)} }
	for name, tc := range map[string]struct {
		rows []prompt
		want Size
		text string
	}{
		"no ids":                {[]prompt{{isl: 5}}, Size{512, Assumed, 1, math.MaxInt}, "512 tokens (assumed: every size from 1 fits)"},
		"ceil":                  {[]prompt{row(513, 2), row(512, 1), row(1024, 2), row(1025, 3)}, Size{512, Detected, 512, 512}, "512 tokens (detected)"},
		"floor":                 {[]prompt{row(64, 1), row(63, 0), row(127, 1), row(128, 2)}, Size{64, Detected, 64, 64}, "64 tokens (detected)"},
		"512 among many":        {[]prompt{row(600, 2), row(1100, 3)}, Size{512, Assumed, 367, 549}, "512 tokens (assumed: every size from 367 to 549 fits)"},
		"power of two":          {[]prompt{row(100, 2), row(90, 2)}, Size{64, Assumed, 50, 89}, "64 tokens (assumed: every size from 50 to 89 fits)"},
		"no power":              {[]prompt{row(21, 2), row(38, 2)}, Size{19, Assumed, 19, 20}, "19 tokens (assumed: every size from 19 to 20 fits)"},
		"no size":               {[]prompt{row(100, 1), row(10, 3)}, Size{512, Assumed, 100, 4}, "512 tokens (assumed: no one size fits every row)"},
		"empty prompt":          {[]prompt{row(0, 0), row(16, 1), row(17, 2)}, Size{16, Detected, 16, 16}, "16 tokens (detected)"},
		"one long prompt":       {[]prompt{row(1501, 1)}, Size{2048, Assumed, 1501, math.MaxInt}, "2048 tokens (assumed: every size from 1501 fits)"},
		"a power above 512":     {[]prompt{row(9000, 2), row(600, 1)}, Size{8192, Assumed, 4500, 8999}, "8192 tokens (assumed: every size from 4500 to 8999 fits)"},
		"a prompt of one block": {[]prompt{row(1_000_000, 1)}, Size{512, Assumed, 1_000_000, 16384}, "512 tokens (assumed: no one size fits every row)"},
		"large and settled":     {[]prompt{row(40_000, 1), row(40_001, 2)}, Size{40_000, Detected, 40_000, 40_000}, "40000 tokens (detected)"},
		"empty lists alone":     {[]prompt{row(1501, 0), row(7, 0)}, Size{512, Assumed, 1, math.MaxInt}, "512 tokens (assumed: every size from 1 fits)"},
		"a list left empty":     {[]prompt{row(513, 2), row(512, 1), row(1024, 2), row(1025, 3), row(5000, 0)}, Size{512, Detected, 512, 512}, "512 tokens (detected)"},
		"ceil before floor":     {[]prompt{row(6758, 14), row(7322, 15), row(7236, 15), row(2290, 5)}, Size{512, Assumed, 489, 516}, "512 tokens (assumed: every size from 489 to 516 fits)"},
		"floor by short prompt": {[]prompt{row(127, 1), row(64, 1), row(128, 2), row(10, 0)}, Size{64, Detected, 64, 64}, "64 tokens (detected)"},
		"ids of nothing":        {[]prompt{row(0, 1), row(16, 1), row(17, 2)}, Size{512, Assumed, 16, 0}, "512 tokens (assumed: no one size fits every row)"},
	} {
		t.Run(name, func(t *testing.T) {
			var d SizeDetector
			for _, r := range tc.rows {
				d.Add(r.isl, r.ids)
			}
			got := d.Size()
			if tc.want.Low <= tc.want.High && got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if got.String() != tc.text {
				t.Errorf("got %q, want %q", got, tc.text)
			}
		})
	}
	if got := GivenSize(16).String(); got != "16 tokens (given)" {
		t.Error(got)
	}
}

// TestSizeIsEverySizeThatFits compares the interval arithmetic with the
// definition, size by size.
func TestSizeIsEverySizeThatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 40).Draw(t, "size")
		floor := rapid.Bool().Draw(t, "floor")
		count := func(isl, b int) int {
			if floor {
				return isl / b
			}
			return (isl + b - 1) / b
		}
		var d SizeDetector
		isls := rapid.SliceOfN(rapid.IntRange(0, 300), 1, 20).Draw(t, "isl")
		for _, isl := range isls {
			d.Add(isl, make([]uint64, count(isl, size)))
		}
		s, below := d.fits()
		if floor {
			s = below
		}
		for b := 1; b <= 400; b++ {
			fits := true
			for _, isl := range isls {
				fits = fits && count(isl, b) == count(isl, size)
			}
			if fits != s.contains(b) {
				t.Fatalf("size %d fits: %v, but the interval is %d..%d", b, fits, s.low(), s.high())
			}
		}
	})
}

// sized draws rows with blocks of a size. A partial last block may have an id or
// not.
func sized(t *rapid.T, size int, floor bool) *SizeDetector {
	d := &SizeDetector{}
	for _, isl := range rapid.SliceOfN(rapid.IntRange(0, 4*size), 0, 20).Draw(t, "isl") {
		n := (isl + size - 1) / size
		if floor {
			n = isl / size
		}
		d.Add(isl, make([]uint64, n))
	}
	return d
}

// Traces of one block size never disagree by either rule; those of very different
// sizes do once their rows show it.
func TestDisagrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 600).Draw(t, "size")
		a, b := sized(t, size, rapid.Bool().Draw(t, "floor a")), sized(t, size, rapid.Bool().Draw(t, "floor b"))
		known := KnownSize(size)
		if a.Disagrees(b) || a.Disagrees(&known) || known.Disagrees(b) {
			t.Fatalf("of one size: %+v and %+v", a, b)
		}
	})
	of := func(isl, ids int) *SizeDetector {
		d := &SizeDetector{}
		d.Add(isl, make([]uint64, ids))
		return d
	}
	odd := of(100, 9)
	odd.Add(100, make([]uint64, 1))
	known := KnownSize(16)
	known.Add(100, make([]uint64, 1)) // ignored: the size is known
	for name, tc := range map[string]struct {
		a, b *SizeDetector
		want bool
	}{
		"16 and 512":        {of(160, 10), of(5120, 10), true},
		"known and 512":     {&known, of(5120, 10), true},
		"known and 16":      {&known, of(160, 10), false},
		"no rows":           {&SizeDetector{}, of(160, 10), false},
		"empty lists":       {of(5, 0), &known, false},
		"of no one size":    {odd, &known, false},
		"ceil of the other": {of(100, 6), of(105, 6), false}, // 17..20, or floor, 15..16 and 16..17
	} {
		if tc.a.Disagrees(tc.b) != tc.want || tc.b.Disagrees(tc.a) != tc.want {
			t.Errorf("%s: not %v", name, tc.want)
		}
	}
	if got := known.Size(); got != GivenSize(16) {
		t.Errorf("known size %v", got)
	}
}
