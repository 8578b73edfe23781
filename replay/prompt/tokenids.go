package prompt

import (
	"encoding/binary"
	"slices"
	"strconv"
)

// AppendTokens appends the prompt as p.Len() token ids.
func (p Prompt) AppendTokens(dst []uint32) []uint32 {
	dst = slices.Grow(dst, p.length)
	for r := range p.runs() {
		ids := dst[len(dst) : len(dst)+r.n]
		for j := range ids {
			ids[j] = p.ids.id(draw(r.key, r.from+uint64(j)))
		}
		dst = dst[:len(dst)+r.n]
	}
	return dst
}

// AppendJSONTokens appends the prompt as a JSON array of token ids, without white
// space: [1234,5678].
func (p Prompt) AppendJSONTokens(dst []byte) []byte {
	dst = append(dst, '[')
	if p.length == 0 {
		return append(dst, ']')
	}
	for r := range p.runs() {
		dst = p.ids.appendDecimals(dst, r)
	}
	dst[len(dst)-1] = ']' // replaces the last comma
	return dst
}

// AppendJSONIDs appends token ids as AppendJSONTokens does those of a prompt.
func AppendJSONIDs(dst []byte, ids []uint32) []byte {
	const width = 11 // ten digits and a comma
	dst = slices.Grow(append(dst, '['), len(ids)*width+1)
	text, at := dst[len(dst):cap(dst)], 0
	for _, id := range ids {
		at += putDecimal(text[at:], id)
	}
	if at > 0 {
		at-- // the last comma
	}
	return append(dst[:len(dst)+at], ']')
}

// idRange is the range of token ids to draw from.
type idRange struct {
	low, span uint64
	width     int // maximum bytes per id in JSON, with the comma
}

func newIDRange(low, high uint32) idRange {
	high = max(low, high)
	var digits [10]byte
	return idRange{low: uint64(low), span: uint64(high - low), width: len(strconv.AppendUint(digits[:0], uint64(high), 10)) + 1}
}

// id scales a draw to the range, with a multiplication instead of a division.
func (r idRange) id(draw uint64) uint32 { return uint32(r.low + (draw>>32)*r.span>>32) }

// appendDecimals appends the token ids of a run, each followed by a comma.
func (r idRange) appendDecimals(dst []byte, from run) []byte {
	dst = slices.Grow(dst, from.n*r.width)
	text, at := dst[len(dst):cap(dst)], 0
	for j := range uint64(from.n) {
		at += putDecimal(text[at:], r.id(draw(from.key, from.from+j)))
	}
	return dst[:len(dst)+at]
}

// putDecimal writes an id and a comma and returns the number of bytes. Prompts are
// tens of thousands of ids of 4 to 6 digits: with two loads and two stores per id
// it takes half the time of strconv.
func putDecimal(text []byte, id uint32) int {
	thousands, rest := id/1000, id%1000
	if thousands == 0 || thousands >= 1000 {
		return len(append(strconv.AppendUint(text[:0], uint64(id), 10), ','))
	}
	first := firstDigits[thousands]
	binary.LittleEndian.PutUint32(text, first)
	n := int(first >> 24)
	binary.LittleEndian.PutUint32(text[n:], lastDigits[rest])
	return n + 4
}

// firstDigits holds the numbers below 1000 as text, from the lowest byte up, with
// the text's length in the highest byte. lastDigits holds them as three digits and
// a comma.
var firstDigits, lastDigits = packDecimals()

func packDecimals() (first, last *[1000]uint32) {
	first, last = new([1000]uint32), new([1000]uint32)
	for i := range first {
		var text [4]byte
		text[3] = byte(len(strconv.AppendInt(text[:0], int64(i), 10)))
		first[i] = binary.LittleEndian.Uint32(text[:])
		last[i] = binary.LittleEndian.Uint32([]byte{byte('0' + i/100), byte('0' + i/10%10), byte('0' + i%10), ','})
	}
	return first, last
}
