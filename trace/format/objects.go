package format

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"moontide/trace"
)

// objectReader splits a text into its JSON objects, which follow one another or
// are the elements of one array. It holds one of them.
type objectReader struct {
	in      *bufio.Reader
	maxSize int // bytes of one object
	buf     []byte
	offset  int64 // of the next byte
	line    int   // of the next byte, from 1
	array   bool
	begun   bool
	ended   bool
	start   int64 // of the object that next returned last
	atLine  int   // where that object starts
}

func newObjectReader(in io.Reader, maxSize int) *objectReader {
	return &objectReader{in: bufio.NewReaderSize(in, 256<<10), maxSize: maxSize, line: 1}
}

// next returns the next object, or io.EOF. The object is valid until the next
// call. After a syntax error, which is at o.line, nothing more can be read.
func (o *objectReader) next() ([]byte, error) {
	c, err := o.firstByte()
	if err != nil {
		return nil, err
	}
	if c != '{' {
		return nil, fmt.Errorf("not a JSON object: %s", o.context(c))
	}
	o.start, o.atLine = o.offset-1, o.line
	o.buf = append(o.buf[:0], c)
	depth, inString, escaped := 1, false, false
	for depth > 0 {
		c, err := o.byte()
		if err == io.EOF {
			return nil, fmt.Errorf("the file ends within the object that starts on line %d: %s", o.atLine, Quote(o.buf))
		}
		if err != nil {
			return nil, err
		}
		if len(o.buf) == o.maxSize {
			return nil, fmt.Errorf("the object that starts on line %d is longer than %d MiB: %s", o.atLine, o.maxSize>>20, Quote(o.buf))
		}
		o.buf = append(o.buf, c)
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
	return o.buf, nil
}

// firstByte returns the first byte of the next object.
func (o *objectReader) firstByte() (byte, error) {
	comma := !o.begun || !o.array
	for {
		c, err := o.byte()
		switch {
		case err == io.EOF && o.array && !o.ended:
			return 0, errors.New("the file ends within its array")
		case err != nil:
			return 0, err
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case o.ended:
			return 0, fmt.Errorf("text after the end of the array: %s", o.context(c))
		case !o.begun && c == '[':
			o.array, o.begun = true, true
			comma = true
		case o.array && c == ']' && !(comma && o.start > 0):
			o.ended = true
		case !comma && c == ',':
			comma = true
		case !comma:
			return 0, fmt.Errorf("expected a comma or the end of the array: %s", o.context(c))
		default:
			o.begun = true
			return c, nil
		}
	}
}

func (o *objectReader) byte() (byte, error) {
	c, err := o.in.ReadByte()
	if err != nil {
		if err != io.EOF {
			err = trace.ReadError{Err: err}
		}
		return 0, err
	}
	o.offset++
	if c == '\n' {
		o.line++
	}
	return c, nil
}

// context quotes the text from c on.
func (o *objectReader) context(c byte) string {
	rest, _ := o.in.Peek(80)
	return Quote(append([]byte{c}, rest...))
}
