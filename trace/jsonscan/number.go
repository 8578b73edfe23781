package jsonscan

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Int reads an integer from 0 to most, written only in digits.
func (c *Cursor) Int(most int) int {
	n := c.Uint()
	if n > uint64(most) {
		c.Fail()
		return 0
	}
	return int(n)
}

// Uint reads an unsigned 64-bit integer, written only in digits.
func (c *Cursor) Uint() uint64 {
	c.Peek()
	return c.uint()
}

// uint is Uint without white space before the integer.
func (c *Cursor) uint() uint64 {
	if c.at+8 <= len(c.text) {
		if n, width := sevenDigits(binary.LittleEndian.Uint64(c.text[c.at:])); width > 0 {
			c.at += width
			return n
		}
	}
	return c.longUint()
}

// longUint is the slow path of Uint, for integers of any length.
func (c *Cursor) longUint() (n uint64) {
	start := c.at
	for c.at-start < 16 && c.at+8 <= len(c.text) { // hashes have up to twenty digits
		eight, ok := eightDigits(binary.LittleEndian.Uint64(c.text[c.at:]))
		if !ok {
			break
		}
		n = n*1e8 + eight
		c.at += 8
	}
	for ; c.at < len(c.text); c.at++ {
		d := uint64(c.text[c.at] - '0')
		if d > 9 {
			break
		}
		if c.at-start >= 19 { // only the twentieth digit can overflow
			hi, lo := bits.Mul64(n, 10)
			sum, carry := bits.Add64(lo, d, 0)
			if hi+carry != 0 {
				c.Fail()
				return 0
			}
			n = sum
			continue
		}
		n = n*10 + d
	}
	c.checkDigits(start, c.at)
	return n
}

// checkDigits fails unless the text from start to end is a JSON integer: at least
// one digit and no leading zero. The next read checks the text after it.
func (c *Cursor) checkDigits(start, end int) {
	if end == start || end-start > 1 && c.text[start] == '0' {
		c.Fail()
	}
}

// maxDecimal is the maximum length of a Decimal, so that it fits in 64 bits.
const maxDecimal = 18

// Pow10 holds the powers of ten that are exact in a float64.
var Pow10 = [23]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// Decimal reads a number of up to 18 characters without an exponent: its value is
// n / 10^places. For |n| < 2^53 the quotient float64(n) / Pow10[places] is the
// correctly rounded value.
func (c *Cursor) Decimal() (n int64, places int) {
	minus := c.Peek() == '-'
	if minus {
		c.at++
	}
	start, end := c.at, c.at
	text := c.text[:min(len(c.text), start+maxDecimal)]
	for ; end < len(text) && text[end]-'0' <= 9; end++ {
		n = n*10 + int64(text[end]-'0')
	}
	c.checkDigits(start, end)
	if end < len(text) && text[end] == '.' {
		point := end
		for end++; end < len(text) && text[end]-'0' <= 9; end++ {
			n = n*10 + int64(text[end]-'0')
		}
		if places = end - point - 1; places == 0 {
			c.Fail()
		}
	}
	if end == start+maxDecimal && end < len(c.text) { // there may be more digits
		c.Fail()
	}
	if c.failed {
		return 0, 0
	}
	c.at = end
	if minus {
		n = -n
	}
	return n, places
}

// Uints reads an array of unsigned 64-bit integers into dst, whose memory it
// reuses. It fails, before allocating, if there are more than most.
func (c *Cursor) Uints(dst []uint64, most int) []uint64 {
	if dst = dst[:0]; dst == nil {
		dst = []uint64{}
	}
	more := c.Open('[')
	// Each takes at least two bytes, so most arrays need not be counted.
	if rest := c.text[c.at:]; more && len(rest)/2 > most {
		if end := bytes.IndexByte(rest, ']'); end < 0 || bytes.Count(rest[:end], comma)+1 > most {
			c.Fail()
			return nil
		}
	}
	for more {
		c.Peek()
		start := c.at
		dst = append(dst, c.uint())
		if c.at+1 < len(c.text) && c.text[c.at] == ',' && c.text[c.at+1] == ' ' {
			width := c.at - start
			c.at += 2
			dst = c.successors(dst, start, width)
			continue
		}
		more = c.More(']')
	}
	if c.failed {
		return nil
	}
	return dst
}

// NumbersText reads an array that begins with a digit, up to the first closing bracket, and
// returns its text, which it does not check further. It reads nothing and returns nil if
// the next value is another.
func (c *Cursor) NumbersText() []byte {
	if c.Peek() != '[' {
		return nil
	}
	rest := c.text[c.at:]
	end, first := bytes.IndexByte(rest, ']')+1, New(rest[1:])
	if digit := first.Peek() - '0'; digit > 9 || end == 0 {
		return nil
	}
	c.at += end
	return rest[:end:end]
}

var comma = []byte{','}

// successors reads numbers while each is one more than its predecessor, separated
// by a comma and a space. The text of such a number is known in advance, and
// comparing is several times faster than parsing. The previous number starts at
// start and has width digits. The cursor is after the space that follows it, and
// ends up after the space that follows the last number read.
func (c *Cursor) successors(dst []uint64, start, width int) []uint64 {
	if width > 7 || start+8 > len(c.text) {
		return dst
	}
	b, i := c.text, c.at
	step := width + len(", ")
	mask := ^uint64(0) >> (64 - 8*min(step, 8)) // with 7 digits, the space is beyond the word
	text := binary.LittleEndian.Uint64(b[start:]) & mask
	n := dst[len(dst)-1]
	for i+9 <= len(b) && increment(&text, 8*(width-1)) {
		if binary.LittleEndian.Uint64(b[i:])&mask != text || b[i+step-1] != ' ' {
			break
		}
		n++
		dst = append(dst, n)
		i += step
	}
	c.at = i
	return dst
}

// increment adds one to the decimal number in the bytes of a word, with its last
// digit at bit last and earlier digits below it. It returns false if all digits
// are nines, as the result would have another digit.
func increment(text *uint64, last int) bool {
	for *text>>last&0xff == '9' {
		if last == 0 {
			return false
		}
		*text -= 9 << last
		last -= 8
	}
	*text += 1 << last
	return true
}

// Eight characters are handled as one word, the first in the lowest byte.
const (
	zeros    = 0x3030303030303030
	highBits = 0x8080808080808080
)

// notDigits sets the high bit of the first byte above 9 in values, which holds
// characters minus '0'. A carry can only affect later bytes.
func notDigits(values uint64) uint64 { return (values + 0x7676767676767676 | values) & highBits }

// joinDigits returns the number with the eight digits in values, each 0..9, after
// D. Lemire, "Quickly parsing eight digits" (2018): neighbours are joined to
// numbers below 100, then to the whole, with one multiplication each.
func joinDigits(values uint64) uint64 {
	values = values*10 + values>>8
	const pairs = 0x000000ff000000ff
	return (values&pairs*(100+1000000<<32) + values>>16&pairs*(1+10000<<32)) >> 32
}

// eightDigits parses a word of eight decimal digits.
func eightDigits(word uint64) (uint64, bool) {
	values := word ^ zeros
	return joinDigits(values), notDigits(values) == 0
}

// sevenDigits parses the decimal digits at the beginning of a word. The width is 0
// if there are none, eight or more, or a leading zero.
func sevenDigits(word uint64) (n uint64, width int) {
	values := word ^ zeros
	width = bits.TrailingZeros64(notDigits(values)) / 8
	if width == 0 || width == 8 || values&0xff == 0 && width > 1 {
		return 0, 0
	}
	return joinDigits(values << (64 - 8*width)), width // with leading zeros
}
