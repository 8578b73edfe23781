package trace

import (
	"fmt"
	"math"
	"math/bits"
)

// DefaultBlockSize is the block size of the published Mooncake traces, in
// tokens. It is assumed where a trace does not settle its own.
const DefaultBlockSize = 512

// How a block size came to be known.
const (
	Given    = "given"
	Detected = "detected"
	Assumed  = "assumed"
)

// BlockSize is the number of tokens of a block and how it is known.
type BlockSize struct {
	Tokens int
	How    string // Given, Detected or Assumed
	// Low and High bound the sizes that fit every row of the trace; High is
	// math.MaxInt where nothing bounds it. Low > High: no one size fits.
	Low, High int
}

// GivenBlockSize is a size that the user named.
func GivenBlockSize(tokens int) BlockSize {
	return BlockSize{Tokens: tokens, How: Given, Low: tokens, High: tokens}
}

// String says the size and how much it can be relied on.
func (b BlockSize) String() string {
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

// BlockDetector finds the block size of a trace from its rows: the B for which
// every row has ceil(ISL/B) ids, or else floor(ISL/B). The zero value is ready.
type BlockDetector struct {
	rows        int
	ceil, floor span
}

// span is an interval of block sizes in which bounds only tighten. The zero
// span holds every size from 1.
type span struct{ above, below int } // sizes 1+above .. MaxInt-below

func (s *span) atLeast(n int) { s.above = max(s.above, n-1) }
func (s *span) atMost(n int)  { s.below = max(s.below, math.MaxInt-n) }
func (s span) low() int       { return 1 + s.above }
func (s span) high() int      { return math.MaxInt - s.below }
func (s span) empty() bool    { return s.low() > s.high() }
func (s span) holds(n int) bool {
	return s.low() <= n && n <= s.high()
}

// Add takes one row into account. Rows without ids say nothing.
func (d *BlockDetector) Add(r Request) {
	if r.HashIDs == nil {
		return
	}
	d.rows++
	isl, n := r.InputLength, len(r.HashIDs)
	if n == 0 {
		// ceil(ISL/B) is 0 only for an empty prompt; floor(ISL/B) for any B above ISL.
		if isl > 0 {
			d.ceil.atMost(0)
		}
		d.floor.atLeast(isl + 1)
		return
	}
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

// BlockSize returns what the rows so far say. Where more than one size fits,
// it assumes [DefaultBlockSize] if that is among them, else the largest power
// of two that is, else the smallest size.
func (d *BlockDetector) BlockSize() BlockSize {
	if d.rows == 0 {
		return BlockSize{Tokens: DefaultBlockSize, How: Assumed, Low: 1, High: math.MaxInt}
	}
	for _, s := range []span{d.ceil, d.floor} {
		if s.low() == s.high() {
			return BlockSize{Tokens: s.low(), How: Detected, Low: s.low(), High: s.high()}
		}
	}
	fits := d.ceil
	if fits.empty() {
		fits = d.floor
	}
	b := BlockSize{Tokens: DefaultBlockSize, How: Assumed, Low: fits.low(), High: fits.high()}
	if fits.empty() || fits.holds(DefaultBlockSize) {
		return b
	}
	b.Tokens = fits.low()
	if power := 1 << (bits.Len(uint(min(fits.high(), MaxLength))) - 1); fits.holds(power) {
		b.Tokens = power
	}
	return b
}
