package prompt

import (
	"encoding/binary"
	"slices"
	"strconv"
)

// An alphabet is the range of token ids to draw from.
type alphabet struct {
	low, span uint64
	width     int // of an id in JSON at most: its digits and the comma
}

func newAlphabet(low, high uint32) alphabet {
	high = max(low, high)
	var digits [10]byte
	return alphabet{
		low:   uint64(low),
		span:  uint64(high - low),
		width: len(strconv.AppendUint(digits[:0], uint64(high), 10)) + 1,
	}
}

// token scales a draw to the range: a multiplication where a remainder would
// need a division.
func (a alphabet) token(draw uint64) uint32 { return uint32(a.low + (draw>>32)*a.span>>32) }

// appendTokens appends the token ids of a run.
func (a alphabet) appendTokens(dst []uint32, r run) []uint32 {
	dst = slices.Grow(dst, r.n)
	ids := dst[len(dst) : len(dst)+r.n]
	for j := range ids {
		ids[j] = a.token(draw(r.key, r.from+uint64(j)))
	}
	return dst[:len(dst)+r.n]
}

// appendDecimals appends the token ids of a run, each with a comma behind it.
func (a alphabet) appendDecimals(dst []byte, r run) []byte {
	dst = slices.Grow(dst, r.n*a.width)
	text, at := dst[len(dst):cap(dst)], 0
	for j := range uint64(r.n) {
		at += putDecimal(text[at:], a.token(draw(r.key, r.from+j)))
	}
	return dst[:len(dst)+at]
}

// putDecimal writes id and a comma to text and says how many bytes these are.
// A prompt is tens of thousands of numbers, nearly all of them 4 to 6 digits
// long: two loads and two stores for each take half the time of strconv.
func putDecimal(text []byte, id uint32) int {
	thousands, rest := id/1000, id%1000
	if thousands == 0 || thousands >= 1000 {
		return len(append(strconv.AppendUint(text[:0], uint64(id), 10), ','))
	}
	first := leading[thousands]
	binary.LittleEndian.PutUint32(text, first)
	n := int(first >> 24)
	binary.LittleEndian.PutUint32(text[n:], trailing[rest])
	return n + 4
}

// leading holds the numbers below 1000 as text from the lowest byte up and
// their length in the highest byte; trailing has them in three digits, with
// the comma that comes after.
var leading, trailing = packDecimals()

func packDecimals() (leading, trailing *[1000]uint32) {
	leading, trailing = new([1000]uint32), new([1000]uint32)
	for i := range leading {
		var text [4]byte
		text[3] = byte(len(strconv.AppendInt(text[:0], int64(i), 10)))
		leading[i] = binary.LittleEndian.Uint32(text[:])
		trailing[i] = binary.LittleEndian.Uint32([]byte{
			byte('0' + i/100), byte('0' + i/10%10), byte('0' + i%10), ',',
		})
	}
	return leading, trailing
}
