package format

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"moontide/trace"
)

// parseCanonical reads the row as every writer of this format spells it: the
// known keys under their own names, plain numbers, no escapes. It is the hot
// path of every command; a row that it does not take in full (false) goes to
// parseAny, which knows all of JSON.
func parseCanonical(line []byte, r *trace.Request) bool {
	*r = trace.Request{HashIDs: r.HashIDs[:0]}
	p := cursor{b: line}
	if !p.take('{') {
		return false
	}
	var seen keySet
	late := 0 // where ids begin that stand before the length that bounds them
	for {
		key, ok := p.key()
		if !ok || seen&key != 0 {
			return false
		}
		seen |= key
		if key == keyHashIDs && seen&keyInput == 0 {
			late = p.i
			ok = p.skipIDs()
		} else {
			ok = p.value(key, r)
		}
		if !ok {
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
	if seen&(keyInput|keyOutput) != keyInput|keyOutput {
		return false
	}
	if late > 0 {
		p.i = late
		return p.value(keyHashIDs, r)
	}
	if seen&keyHashIDs == 0 {
		r.HashIDs = nil
	}
	return true
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

// keys are the known keys by their first letters, which differ.
var canonicalKeys = [256]struct {
	name string
	key  keySet
}{
	't': {`"timestamp"`, keyTimestamp},
	'd': {`"delay"`, keyDelay},
	'i': {`"input_length"`, keyInput},
	'o': {`"output_length"`, keyOutput},
	'h': {`"hash_ids"`, keyHashIDs},
	's': {`"session_id"`, keySession},
	'c': {`"context_len"`, keyContext},
	'u': {`"unique_user_prompt_len"`, keyUnique},
}

func (p *cursor) key() (keySet, bool) {
	p.space()
	text := p.b[p.i:]
	if len(text) < 2 {
		return 0, false
	}
	k := &canonicalKeys[text[1]]
	if k.key == 0 || len(text) < len(k.name) || string(text[:len(k.name)]) != k.name {
		return 0, false
	}
	p.i += len(k.name)
	return k.key, p.take(':')
}

func (p *cursor) value(key keySet, r *trace.Request) (ok bool) {
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
		r.HashIDs, ok = p.ids(r.HashIDs, mostIDs(r.InputLength))
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
	for p.i-start < 16 && p.i+8 <= len(p.b) { // hashes have up to twenty
		eight, ok := eightDigits(binary.LittleEndian.Uint64(p.b[p.i:]))
		if !ok {
			break
		}
		n = n*1e8 + eight
		p.i += 8
	}
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
	return int(n), ok && n <= trace.MaxLength && p.delimited()
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
	if !ok || n >= trace.MaxMS {
		return 0, false
	}
	if p.i < len(p.b) && p.b[p.i] == '.' {
		p.i++
		start := p.i
		for ; p.i < len(p.b) && n < trace.MaxMS; p.i++ {
			d := uint64(p.b[p.i] - '0')
			if d > 9 {
				break
			}
			n = n*10 + d
		}
		width := p.i - start
		if width == 0 || width > 15 || n >= trace.MaxMS {
			return 0, false
		}
		return float64(n) / pow10[width], p.delimited()
	}
	return float64(n), p.delimited()
}

// skipIDs passes over an array of numbers.
func (p *cursor) skipIDs() bool {
	end := bytes.IndexByte(p.b[p.i:], ']')
	p.i += end + 1
	return end >= 0
}

var comma = []byte{','}

// ids reads the ids of a row, if there are no more than most.
func (p *cursor) ids(dst []uint64, most int) ([]uint64, bool) {
	if !p.take('[') {
		return nil, false
	}
	// Each takes two bytes at least, so that most rows need no counting.
	if rest := p.b[p.i:]; len(rest)/2 > most {
		if end := bytes.IndexByte(rest, ']'); end < 0 || bytes.Count(rest[:end], comma)+1 > most {
			return nil, false
		}
	}
	if dst = dst[:0]; dst == nil {
		dst = []uint64{}
	}
	if p.take(']') {
		return dst, true
	}
	for {
		start := p.i
		id, ok := p.id()
		if !ok {
			return nil, false
		}
		dst = append(dst, id)
		if p.i+1 < len(p.b) && p.b[p.i] == ',' && p.b[p.i+1] == ' ' {
			width := p.i - start
			p.i += 2
			dst = p.successors(dst, start, width)
			continue
		}
		if p.take(',') {
			continue
		}
		return dst, p.take(']')
	}
}

// successors reads the ids after the last of dst for as long as each is one
// more than the one before it, with the published spacing: the text of such an
// id is known beforehand, and to compare it is several times quicker than to
// read it. The id before begins at start and has width characters; the cursor
// is behind the space after it.
func (p *cursor) successors(dst []uint64, start, width int) []uint64 {
	if width > 7 || start+8 > len(p.b) {
		return dst
	}
	b, i := p.b, p.i
	step := width + len(", ")
	mask := ^uint64(0) >> (64 - 8*min(step, 8)) // of 7 digits, the space lies behind
	text := binary.LittleEndian.Uint64(b[start:]) & mask
	id := dst[len(dst)-1]
	for i+9 <= len(b) && increment(&text, 8*(width-1)) {
		if binary.LittleEndian.Uint64(b[i:])&mask != text || b[i+step-1] != ' ' {
			break
		}
		id++
		dst = append(dst, id)
		i += step
	}
	p.i = i
	return dst
}

// increment adds one to a number that is written in the bytes of a word, its
// last digit at bit last, the digits before it below; false: all are nines.
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

// Eight characters are handled as one word, the first in the lowest byte.
const (
	zeros = 0x3030303030303030
	tops  = 0x8080808080808080
)

// notDigits marks with its top bit the first byte above 9 among values, the
// characters less '0'. A carry can spoil only what follows that.
func notDigits(values uint64) uint64 { return (values + 0x7676767676767676 | values) & tops }

// joined is the number of eight digits given as values 0..9, after D. Lemire,
// "Quickly parsing eight digits" (2018): neighbours are joined to numbers below
// 100, then to the whole, with one multiplication each.
func joined(values uint64) uint64 {
	values = values*10 + values>>8
	const pairs = 0x000000ff000000ff
	return (values&pairs*(100+1000000<<32) + values>>16&pairs*(1+10000<<32)) >> 32
}

// eightDigits reads eight decimal digits, if that is what the word is.
func eightDigits(word uint64) (uint64, bool) {
	values := word ^ zeros
	return joined(values), notDigits(values) == 0
}

// sevenDigits reads the decimal digits at the beginning of a word. A width of 0
// leaves the text to digits: there are none, or eight or more, or a leading
// zero.
func sevenDigits(word uint64) (n uint64, width int) {
	values := word ^ zeros
	width = bits.TrailingZeros64(notDigits(values)) / 8
	if width == 0 || width == 8 || values&0xff == 0 && width > 1 {
		return 0, 0
	}
	return joined(values << (64 - 8*width)), width // behind leading zeros
}
