package block

import (
	"fmt"
	"math"
	"math/bits"
)

// DefaultSize is the block size of the published Mooncake traces in tokens.
// It is assumed if a trace does not determine its block size.
const DefaultSize = 512

// maxAssumed is the largest block size that is assumed: no engine has larger
// blocks. A given or detected size may be larger.
const maxAssumed = 16384

// The sources of a block size.
const (
	Given    = "given"
	Detected = "detected"
	Assumed  = "assumed"
)

// Size is the number of tokens of a block and its source.
type Size struct {
	Tokens int
	How    string // Given, Detected or Assumed
	// Low and High bound the sizes that fit every row of the trace; High is
	// math.MaxInt if unbounded. If Low > High, no size of an engine fits.
	Low, High int
}

// GivenSize returns a block size set by the user.
func GivenSize(tokens int) Size {
	return Size{Tokens: tokens, How: Given, Low: tokens, High: tokens}
}

// String returns the size and its source.
func (b Size) String() string {
	switch {
	case b.How != Assumed:
		return fmt.Sprintf("%d tokens (%s)", b.Tokens, b.How)
	case b.Low > b.High:
		return fmt.Sprintf("%d tokens (assumed: no one size fits every row)", b.Tokens)
	case b.High == math.MaxInt:
		return fmt.Sprintf("%d tokens (assumed: every size from %d fits)", b.Tokens, b.Low)
	default:
		return fmt.Sprintf("%d tokens (assumed: every size from %d to %d fits)", b.Tokens, b.Low, b.High)
	}
}

// SizeDetector finds the block size of a trace from its rows: the B for which
// every row has ceil(ISL/B) ids, or else floor(ISL/B). The zero value works.
type SizeDetector struct {
	rows         int // with ids
	ceil, floor  span
	longestEmpty int // ISL of a row with an empty list of ids
	known        int // the size if it is not to be detected
}

// span is an interval of block sizes that can only be narrowed. The zero span
// contains every size from 1.
type span struct{ above, below int } // sizes 1+above .. MaxInt-below

// none contains no size.
var none = span{below: math.MaxInt}

func (s *span) atLeast(n int) { s.above = max(s.above, n-1) }
func (s *span) atMost(n int)  { s.below = max(s.below, math.MaxInt-n) }
func (s span) low() int       { return 1 + s.above }
func (s span) high() int      { return math.MaxInt - s.below }
func (s span) empty() bool    { return s.low() > s.high() }
func (s span) contains(n int) bool {
	return s.low() <= n && n <= s.high()
}

// KnownSize returns a detector that always returns this size.
func KnownSize(tokens int) SizeDetector {
	only := span{above: tokens - 1, below: math.MaxInt - tokens}
	return SizeDetector{known: tokens, ceil: only, floor: only}
}

// Add adds a prompt of isl tokens. Those without ids are ignored, except empty lists: see
// fits.
func (d *SizeDetector) Add(isl int, ids []uint64) {
	if ids == nil || d.known > 0 {
		return
	}
	n := len(ids)
	if n == 0 {
		d.longestEmpty = max(d.longestEmpty, isl)
		return
	}
	d.rows++
	d.ceil.atLeast((isl + n - 1) / n)
	if n > 1 {
		d.ceil.atMost((isl - 1) / (n - 1))
	}
	if isl == 0 {
		d.ceil.atMost(0)
	}
	d.floor.atLeast(isl/(n+1) + 1)
	d.floor.atMost(isl / n)
}

// fits returns the sizes that fit by either rule. By the floor rule, a prompt with
// an empty list of ids is shorter than a block. If that is impossible, an empty
// list is ignored like a missing one.
func (d *SizeDetector) fits() (ceil, floor span) {
	if d.longestEmpty == 0 {
		return d.ceil, d.floor
	}
	floor = d.floor
	if floor.atLeast(d.longestEmpty + 1); floor.empty() {
		return d.ceil, d.floor
	}
	return none, floor
}

// Disagrees reports whether the rows of two traces cannot have the same block
// size. Rows that no size fits are ignored.
func (d *SizeDetector) Disagrees(o *SizeDetector) bool {
	some := false
	for _, a := range []span{d.ceil, d.floor} {
		for _, b := range []span{o.ceil, o.floor} {
			if a.empty() || b.empty() {
				continue
			}
			if some = true; max(a.low(), b.low()) <= min(a.high(), b.high()) {
				return false
			}
		}
	}
	return some
}

// Size returns the block size of the rows so far. If several sizes fit, it
// assumes [DefaultSize], or else the power of two nearest to it that fits, or
// else the smallest size; at most 16,384.
func (d *SizeDetector) Size() Size {
	if d.known > 0 {
		return GivenSize(d.known)
	}
	if d.rows == 0 {
		return Size{Tokens: DefaultSize, How: Assumed, Low: 1, High: math.MaxInt}
	}
	ceil, floor := d.fits()
	fits := ceil
	if fits.empty() {
		fits = floor
	}
	if fits.low() == fits.high() {
		return Size{Tokens: fits.low(), How: Detected, Low: fits.low(), High: fits.high()}
	}
	if fits.low() > maxAssumed {
		fits.atMost(maxAssumed)
	}
	b := Size{Tokens: DefaultSize, How: Assumed, Low: fits.low(), High: fits.high()}
	if fits.empty() || fits.contains(DefaultSize) {
		return b
	}
	b.Tokens = fits.low()
	power := 1 << (bits.Len(uint(fits.high())) - 1) // the largest, as all are below the default
	if fits.low() > DefaultSize {
		power = 1 << bits.Len(uint(fits.low()-1)) // the smallest, as all are above it
	}
	if fits.contains(power) {
		b.Tokens = power
	}
	return b
}
