// Package jsonscan reads JSON in hot paths without building a tree.
//
// A [Cursor] walks over one JSON text in place and allocates nothing. Errors
// are sticky: after the first one every read returns zero, every loop ends, and
// [Cursor.Done] reports false. A scanner for a known layout is therefore a loop
// and a switch that leaves everything unusual to a full decoder:
//
//	c := jsonscan.New(line)
//	for more := c.Open('{'); more; more = c.More('}') {
//		switch string(c.Key()) {
//		case "input_length":
//			n = c.Int(maxLength)
//		default:
//			c.Skip()
//		}
//	}
//	if !c.Done() { // decode the line with Strict instead
//	}
//
// [Members] and [Elements] walk over JSON that is known to be valid.
package jsonscan

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strings"

	"github.com/bytedance/sonic"
	"github.com/bytedance/sonic/decoder"
)

// Strict is the sonic configuration for untrusted JSON: it rejects invalid strings that
// the default accepts, and returns copies so that results do not keep the input alive. It
// may accept a wrong escape in a member that it skips: check with encoding/json.Valid first.
var Strict = sonic.Config{SortMapKeys: true, ValidateString: true, CopyString: true}.Froze()

// IsName reports whether a key looks like a name and not like data, so that an error about
// a file that may be anybody's can quote it: a letter or _, then at most 39 letters, digits
// or _.-.
func IsName(key string) bool {
	for i, c := range []byte(key) {
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c != '.' && c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return key != "" && len(key) <= 40
}

// Fault returns what is wrong with a JSON text and where, of an error of sonic, which
// quotes the text around that place, or of encoding/json, which names Go types.
func Fault(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		names := strings.Split(e.Field, ".")
		names = slices.DeleteFunc(names, func(name string) bool { return name != "" && name[0] >= 'A' && name[0] <= 'Z' }) // of Go
		return fmt.Errorf("%s has the wrong type", cmp.Or(strings.Join(names, "."), "the text"))
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON text ends early")
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("invalid JSON at byte %d", e.Offset)
	}
	if e, ok := errors.AsType[decoder.SyntaxError](err); ok {
		return fmt.Errorf("invalid JSON at byte %d", e.Pos)
	}
	if e, ok := errors.AsType[*decoder.MismatchTypeError](err); ok {
		return fmt.Errorf("the value at byte %d has the wrong type", e.Pos)
	}
	if key, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("unknown key %.40s", key)
	}
	return errors.New("invalid JSON")
}

// MaxDepth is the maximum nesting depth that [Cursor.Skip] accepts.
const MaxDepth = 16

// Cursor is a position in a JSON text. All methods skip white space first. The
// text must not change while slices returned by a method are in use.
type Cursor struct {
	text   []byte
	at     int
	failed bool
}

// New returns a cursor at the start of text.
func New(text []byte) Cursor { return Cursor{text: text} }

// Fail makes the cursor fail: see the package comment.
func (c *Cursor) Fail() { c.at, c.failed = len(c.text), true }

// Done reports whether everything was read and nothing failed.
func (c *Cursor) Done() bool { return c.Peek() == 0 && c.at == len(c.text) && !c.failed }

// Failed reports whether a read failed.
func (c *Cursor) Failed() bool { return c.failed }

// Once fails if bit is already set in seen, because the key is a duplicate.
func (c *Cursor) Once(seen *uint32, bit uint32) {
	if *seen&bit != 0 {
		c.Fail()
	}
	*seen |= bit
}

// Peek returns the next byte that is not white space without reading it, or 0
// at the end.
func (c *Cursor) Peek() byte {
	if c.at < len(c.text) && c.text[c.at] > ' ' {
		return c.text[c.at]
	}
	return c.peekPastSpace()
}

func (c *Cursor) peekPastSpace() byte {
	for ; c.at < len(c.text); c.at++ {
		switch b := c.text[c.at]; b {
		case ' ', '\n', '\t', '\r':
		default:
			return b
		}
	}
	return 0
}

// Open enters an object ('{') or array ('[') and reports whether it has
// elements.
func (c *Cursor) Open(bracket byte) bool {
	if c.Peek() != bracket {
		c.Fail()
		return false
	}
	c.at++
	if c.Peek() == bracket+2 { // the closing bracket, in ASCII
		c.at++
		return false
	}
	return !c.failed
}

// More reads the comma before the next element and returns true, or reads the
// closing bracket and returns false.
func (c *Cursor) More(closing byte) bool {
	switch b := c.Peek(); b {
	case ',':
		c.at++
		c.skipOneSpace()
		return true
	case closing:
		c.at++
	default:
		c.Fail()
	}
	return false
}

// Key reads the key of a member and the colon. It returns the key
// unmodified, escapes included.
func (c *Cursor) Key() []byte {
	if c.Peek() != '"' {
		return c.unusualKey()
	}
	text, start := c.text, c.at+1
	end := start
	for stop := uint64(0); stop == 0 && end < len(text); {
		stop = notInLowerKey(wordAt(text, end))
		end += bits.TrailingZeros64(stop) / 8 // 8 if there is none
	}
	if end >= len(text) || text[end] != '"' {
		return c.unusualKey()
	}
	at := end + 1
	if at < len(text) && text[at] == ':' { // colon, without a call
		if at++; at < len(text) && text[at] == ' ' {
			at++
		}
		c.at = at
		return text[start:end]
	}
	c.at = at
	c.colon()
	return text[start:end]
}

// KeyIs reports whether the next key, which has no escapes, is this one, in the usual
// spelling. If so it reads the key and the colon.
func (c *Cursor) KeyIs(key string) bool {
	const around = len(`"": `)
	next := c.text[c.at:]
	if len(next) < len(key)+around || string(next[1:1+len(key)]) != key || next[0] != '"' || string(next[1+len(key):len(key)+around]) != `": ` {
		return false
	}
	c.at += len(key) + around
	return true
}

// unusualKey reads a key with capitals, escapes or characters beyond ASCII.
func (c *Cursor) unusualKey() []byte {
	key := c.Text()
	c.colon()
	return key
}

// wordAt returns the eight bytes from at, with zeros after the end.
func wordAt(text []byte, at int) uint64 {
	if at+8 <= len(text) {
		return binary.LittleEndian.Uint64(text[at:])
	}
	var last [8]byte
	copy(last[:], text[at:])
	return binary.LittleEndian.Uint64(last[:])
}

// notInLowerKey sets the high bit of the first byte of word that ends a key or makes it
// unusual. Bits of earlier bytes are zero.
func notInLowerKey(word uint64) uint64 {
	const each = 0x0101010101010101
	quote := word ^ each*'"'
	ascii := word &^ highBits
	control := ^(ascii + each*(0x80-' '))
	capital := (ascii + each*(0x80-'A')) &^ (ascii + each*(0x80-'\\'-1)) // or [ or backslash
	return ((quote-each)&^quote | word | control | capital) & highBits
}

func (c *Cursor) colon() {
	if c.Peek() != ':' {
		c.Fail()
		return
	}
	c.at++
	c.skipOneSpace()
}

// skipOneSpace keeps the usual spacing from the slow path of Peek.
func (c *Cursor) skipOneSpace() {
	if c.at < len(c.text) && c.text[c.at] == ' ' {
		c.at++
	}
}

// Text reads a string and returns the text between its quotes unmodified, escapes
// included.
func (c *Cursor) Text() []byte {
	if c.Peek() != '"' {
		c.Fail()
		return nil
	}
	text, start := c.text, c.at+1
	for end := start; ; end++ {
		next := bytes.IndexByte(text[end:], '"')
		if next < 0 {
			c.Fail()
			return nil
		}
		end += next
		escapes := 0
		for text[end-1-escapes] == '\\' { // stops at the opening quote
			escapes++
		}
		if escapes%2 == 0 {
			c.at = end + 1
			return text[start:end]
		}
	}
}

// PlainText reads a string of printable ASCII without escapes and fails for any
// other.
func (c *Cursor) PlainText() []byte {
	text := c.Text()
	for _, b := range text {
		if b < 0x20 || b > 0x7e || b == '\\' {
			c.Fail()
			return nil
		}
	}
	return text
}

// Null reads null and fails for any other value.
func (c *Cursor) Null() {
	c.Peek()
	c.word("null")
}

// True reads true and fails for any other value.
func (c *Cursor) True() {
	c.Peek()
	c.word("true")
}

// word reads a word at the cursor, without skipping white space.
func (c *Cursor) word(word string) {
	if len(c.text)-c.at < len(word) || string(c.text[c.at:c.at+len(word)]) != word {
		c.Fail()
		return
	}
	c.at += len(word)
}

// Skip reads any value and fails if it is malformed or nested deeper than
// [MaxDepth]. It does not check the characters and escapes within strings. It
// reports whether the value is a non-empty string or array.
func (c *Cursor) Skip() (nonEmpty bool) {
	if c.Peek() == '"' { // most values
		return len(c.Text()) > 0
	}
	return c.skip(0)
}

// Value reads any value like [Cursor.Skip] and returns its text.
func (c *Cursor) Value() []byte {
	c.Peek()
	start := c.at
	c.Skip()
	return c.text[start:c.at:c.at]
}

func (c *Cursor) skip(depth int) (nonEmpty bool) {
	switch b := c.Peek(); {
	case b == '"':
		return len(c.Text()) > 0
	case b == '-' || '0' <= b && b <= '9':
		c.skipNumber()
	case b == 'n':
		c.word("null")
	case b == 't':
		c.word("true")
	case b == 'f':
		c.word("false")
	case depth == MaxDepth:
		c.Fail()
	case b == '[':
		for more := c.Open('['); more; more = c.More(']') {
			nonEmpty = true
			c.skip(depth + 1)
		}
	case b == '{':
		for more := c.Open('{'); more; more = c.More('}') {
			c.Key()
			c.skip(depth + 1)
		}
	default:
		c.Fail()
	}
	return nonEmpty
}

// skipNumber reads -?int frac? exp?
func (c *Cursor) skipNumber() {
	if c.text[c.at] == '-' {
		c.at++
	}
	whole := c.skipDigits()
	ok := whole == 1 || whole > 1 && c.text[c.at-whole] != '0'
	if c.at < len(c.text) && c.text[c.at] == '.' {
		c.at++
		ok = c.skipDigits() > 0 && ok
	}
	if c.at < len(c.text) && c.text[c.at]|0x20 == 'e' {
		c.at++
		if c.at < len(c.text) && (c.text[c.at] == '+' || c.text[c.at] == '-') {
			c.at++
		}
		ok = c.skipDigits() > 0 && ok
	}
	if !ok {
		c.Fail()
	}
}

func (c *Cursor) skipDigits() int {
	text, start := c.text, c.at
	end := start
	for end < len(text) && text[end]-'0' <= 9 {
		end++
	}
	c.at = end
	return end - start
}

// Raw reads any value and returns its text. The text must be valid: Raw
// only follows brackets and quotes, and fails if the text is truncated.
func (c *Cursor) Raw() []byte {
	c.Peek()
	text, start, at := c.text, c.at, c.at
	for depth := 0; ; at++ {
		if at >= len(text) {
			if depth > 0 {
				c.Fail()
			}
			break
		}
		switch text[at] {
		case '"':
			c.at = at
			c.Text()
			at = c.at - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		case ',', ' ', '\n', '\t', '\r':
		default:
			continue
		}
		if depth > 0 {
			continue
		}
		if depth == 0 && text[at] != ',' && text[at] > ' ' {
			at++ // include the closing byte of a string, object or array
		}
		break
	}
	c.at = at
	return text[start:at:at]
}
