package format

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"moontide/trace"
)

// values cuts a text into the JSON objects that stand in it one behind the
// other, or in one array. It holds one of them.
type values struct {
	in     *bufio.Reader
	most   int // bytes of one
	buf    []byte
	offset int64 // of the next byte
	line   int   // of it, from 1
	array  bool
	begun  bool
	ended  bool
	at     int64 // of the object that next returned last
	atLine int
}

func newValues(in io.Reader, most int) *values {
	return &values{in: bufio.NewReaderSize(in, 256<<10), most: most, line: 1}
}

// next returns the next object, or io.EOF. It is valid until the next call. An
// error about what the text says is behind values.line; nothing can follow it.
func (v *values) next() ([]byte, error) {
	c, err := v.first()
	if err != nil {
		return nil, err
	}
	if c != '{' {
		return nil, fmt.Errorf("not a JSON object: %s", v.glance(c))
	}
	v.at, v.atLine = v.offset-1, v.line
	v.buf = append(v.buf[:0], c)
	depth, inString, escaped := 1, false, false
	for depth > 0 {
		c, err := v.byte()
		if err == io.EOF {
			return nil, fmt.Errorf("the file ends in the middle of what begins on line %d: %s", v.atLine, Quote(v.buf))
		}
		if err != nil {
			return nil, err
		}
		if len(v.buf) == v.most {
			return nil, fmt.Errorf("what begins on line %d is longer than %d MiB: %s", v.atLine, v.most>>20, Quote(v.buf))
		}
		v.buf = append(v.buf, c)
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	return v.buf, nil
}

// first returns the first byte of the next object.
func (v *values) first() (byte, error) {
	comma := !v.begun || !v.array
	for {
		c, err := v.byte()
		switch {
		case err == io.EOF && v.array && !v.ended:
			return 0, errors.New("the file ends in the middle of its array")
		case err != nil:
			return 0, err
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case v.ended:
			return 0, fmt.Errorf("behind the end of the array: %s", v.glance(c))
		case !v.begun && c == '[':
			v.array, v.begun = true, true
			comma = true
		case v.array && c == ']' && !(comma && v.at > 0):
			v.ended = true
		case !comma && c == ',':
			comma = true
		case !comma:
			return 0, fmt.Errorf("neither a comma nor the end of the array: %s", v.glance(c))
		default:
			v.begun = true
			return c, nil
		}
	}
}

func (v *values) byte() (byte, error) {
	c, err := v.in.ReadByte()
	if err != nil {
		if err != io.EOF {
			err = trace.ReadError{Err: err}
		}
		return 0, err
	}
	v.offset++
	if c == '\n' {
		v.line++
	}
	return c, nil
}

// glance shows what stands at c.
func (v *values) glance(c byte) string {
	rest, _ := v.in.Peek(80)
	return Quote(append([]byte{c}, rest...))
}
