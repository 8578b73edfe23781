package trace

import (
	"encoding/binary"
	"math/bits"
)

// parseCanonical reads the row as every writer of this format spells it: the
// known keys under their own names, plain numbers, no escapes. It is the hot
// path of every command; a row that it does not take in full (false) goes to
// parseAny, which knows all of JSON.
func parseCanonical(line []byte, r *Request) bool {
	*r = Request{HashIDs: r.HashIDs[:0]}
	p := cursor{b: line}
	if !p.take('{') {
		return false
	}
	var seen keySet
	for {
		key, ok := p.key()
		if !ok || seen&key != 0 {
			return false
		}
		seen |= key
		if !p.value(key, r) {
			return false
		}
		if p.take(',') {
			continue
		}
		if !p.take('}') || !p.end() {
			return false
		}
		break
	}
	if seen&keyHashIDs == 0 {
		r.HashIDs = nil
	}
	return seen&(keyInput|keyOutput) == keyInput|keyOutput
}

type keySet uint8

const (
	keyTimestamp keySet = 1 << iota
	keyDelay
	keyInput
	keyOutput
	keyHashIDs
	keySession
	keyContext
	keyUnique
)

// cursor walks over one line. Every method skips leading white space and
// leaves the cursor anywhere when it fails.
type cursor struct {
	b []byte
	i int
}

func (p *cursor) space() {
	for p.i < len(p.b) && isSpace(p.b[p.i]) {
		p.i++
	}
}

func (p *cursor) take(c byte) bool {
	p.space()
	if p.i < len(p.b) && p.b[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *cursor) end() bool {
	p.space()
	return p.i == len(p.b)
}

// text reads a string that holds only printable ASCII and no escapes.
func (p *cursor) text() ([]byte, bool) {
	if !p.take('"') {
		return nil, false
	}
	start := p.i
	for ; p.i < len(p.b); p.i++ {
		switch c := p.b[p.i]; {
		case c == '"':
			p.i++
			return p.b[start : p.i-1], true
		case c < 0x20 || c > 0x7e || c == '\\':
			return nil, false
		}
	}
	return nil, false
}

func (p *cursor) key() (keySet, bool) {
	name, ok := p.text()
	if !ok || !p.take(':') {
		return 0, false
	}
	switch string(name) {
	case "timestamp":
		return keyTimestamp, true
	case "delay":
		return keyDelay, true
	case "input_length":
		return keyInput, true
	case "output_length":
		return keyOutput, true
	case "hash_ids":
		return keyHashIDs, true
	case "session_id":
		return keySession, true
	case "context_len":
		return keyContext, true
	case "unique_user_prompt_len":
		return keyUnique, true
	}
	return 0, false
}

func (p *cursor) value(key keySet, r *Request) (ok bool) {
	switch key {
	case keyTimestamp:
		r.Timestamp.Value, ok = p.decimal()
		r.Timestamp.Set = true
	case keyDelay:
		r.Delay.Value, ok = p.decimal()
		r.Delay.Set = true
	case keyInput:
		r.InputLength, ok = p.length()
	case keyOutput:
		r.OutputLength, ok = p.length()
	case keyContext:
		r.ContextLen.Value, ok = p.length()
		r.ContextLen.Set = true
	case keyUnique:
		r.UniquePromptLen.Value, ok = p.length()
		r.UniquePromptLen.Set = true
	case keyHashIDs:
		r.HashIDs, ok = p.ids(r.HashIDs)
	case keySession:
		var s []byte
		s, ok = p.text()
		r.SessionID = string(s)
	}
	return ok
}

// digits reads an unsigned integer that fits 64 bits and has no leading zero.
func (p *cursor) digits() (n uint64, ok bool) {
	p.space()
	start := p.i
	for ; p.i < len(p.b); p.i++ {
		d := uint64(p.b[p.i] - '0')
		if d > 9 {
			break
		}
		if p.i-start >= 19 { // only from the twentieth digit on can it overflow
			hi, lo := bits.Mul64(n, 10)
			sum, carry := bits.Add64(lo, d, 0)
			if hi+carry != 0 {
				return 0, false
			}
			n = sum
			continue
		}
		n = n*10 + d
	}
	width := p.i - start
	return n, width == 1 || width > 1 && p.b[start] != '0'
}

func (p *cursor) length() (int, bool) {
	n, ok := p.digits()
	return int(n), ok && n <= MaxLength && p.delimited()
}

// delimited reports whether the number just read ends here; 1.0 and 1e3 are
// left to parseAny.
func (p *cursor) delimited() bool {
	if p.i == len(p.b) {
		return false
	}
	switch c := p.b[p.i]; c {
	case ',', '}', ']':
		return true
	default:
		return isSpace(c)
	}
}

// pow10 are the powers of ten that divide a decimal of at most 15 digits.
var pow10 = [16]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// decimal reads up to 15 digits with or without a fraction. Both the digits
// and the power of ten are then exact in a float64, so their quotient is the
// correctly rounded value.
func (p *cursor) decimal() (float64, bool) {
	n, ok := p.digits()
	if !ok || n >= maxMS {
		return 0, false
	}
	if p.i < len(p.b) && p.b[p.i] == '.' {
		p.i++
		start := p.i
		for ; p.i < len(p.b) && n < maxMS; p.i++ {
			d := uint64(p.b[p.i] - '0')
			if d > 9 {
				break
			}
			n = n*10 + d
		}
		width := p.i - start
		if width == 0 || width > 15 || n >= maxMS {
			return 0, false
		}
		return float64(n) / pow10[width], p.delimited()
	}
	return float64(n), p.delimited()
}

func (p *cursor) ids(dst []uint64) ([]uint64, bool) {
	if !p.take('[') {
		return nil, false
	}
	if dst = dst[:0]; dst == nil {
		dst = []uint64{}
	}
	if p.take(']') {
		return dst, true
	}
	for {
		id, ok := p.id()
		if !ok {
			return nil, false
		}
		dst = append(dst, id)
		if p.i+1 < len(p.b) && p.b[p.i] == ',' && p.b[p.i+1] == ' ' {
			p.i += 2
			continue
		}
		if p.take(',') {
			continue
		}
		return dst, p.take(']')
	}
}

// id reads one block id. Nearly all of a trace's bytes are ids of less than
// eight digits, so these are read as one word.
func (p *cursor) id() (uint64, bool) {
	if p.i+8 <= len(p.b) {
		if n, width := sevenDigits(binary.LittleEndian.Uint64(p.b[p.i:])); width > 0 {
			p.i += width
			return n, p.delimited()
		}
	}
	n, ok := p.digits()
	return n, ok && p.delimited()
}

// sevenDigits reads the decimal digits at the beginning of eight characters,
// the first of which is in the lowest byte. A width of 0 leaves the text to
// digits: there are none, or eight or more, or a leading zero.
//
// All digits are handled at once, after D. Lemire, "Quickly parsing eight
// digits" (2018): neighbours are joined to numbers below 100, then to the
// whole, with one multiplication each.
func sevenDigits(word uint64) (n uint64, width int) {
	const (
		zeros = 0x3030303030303030
		tops  = 0x8080808080808080
	)
	values := word ^ zeros
	// Bytes above 9 get their top bit. A carry can spoil only what follows the
	// first of them.
	others := (values + 0x7676767676767676 | values) & tops
	width = bits.TrailingZeros64(others) / 8
	if width == 0 || width == 8 || values&0xff == 0 && width > 1 {
		return 0, 0
	}
	values <<= 64 - 8*width // the digits move up behind leading zeros
	values = values*10 + values>>8
	const pairs = 0x000000ff000000ff
	return (values&pairs*(100+1000000<<32) + values>>16&pairs*(1+10000<<32)) >> 32, width
}
