package format

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"moontide/trace"
)

// MaxRow is the longest row that is accepted, in bytes.
const MaxRow = 64 << 20

// textBuffer is the maximum lookahead of Head, in bytes.
const textBuffer = 256 << 10

// Text reads the lines or JSON objects of a trace file, decompressed and without a byte
// order mark. It is not safe for concurrent use.
type Text struct {
	in      *bufio.Reader
	decoder io.ReadCloser // nil if the file is not compressed
	number  int           // see Number
	long    []byte        // an object, or a line that outgrew in's buffer

	// Of objects.
	line  int  // of the next byte, from 1
	array bool // they are its elements
	ended bool
}

// NewText starts reading from in; errors call it name. Gzip and zstd are
// detected from content.
func NewText(in io.Reader, name string) (*Text, error) {
	t := &Text{in: bufio.NewReaderSize(in, textBuffer), line: 1}
	if err := t.decompress(); err != nil {
		return nil, fmt.Errorf("%s: decompressing: %w", name, err)
	}
	const lfsPointer = "version https://git-lfs.github.com/spec/"
	head, _ := t.in.Peek(len(lfsPointer))
	var wrong error
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		t.in.Discard(3)
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		wrong = errors.New("the file is in UTF-16: save it in UTF-8")
	case string(head) == lfsPointer:
		wrong = errors.New("a Git LFS pointer, not the file: fetch it with git lfs pull")
	}
	if wrong != nil {
		t.Close()
		return nil, &trace.RowError{File: name, Line: 1, Err: wrong}
	}
	return t, nil
}

func (t *Text) decompress() (err error) {
	head, _ := t.in.Peek(4)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		t.decoder, err = gzip.NewReader(t.in)
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		var z *zstd.Decoder
		if z, err = zstd.NewReader(t.in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(512<<20)); err == nil {
			t.decoder = z.IOReadCloser()
		}
	default:
		return nil
	}
	if err == nil {
		t.in = bufio.NewReaderSize(t.decoder, textBuffer)
	}
	return err
}

// Close releases the decoder. It does not close what the text is read from.
func (t *Text) Close() error {
	if t.decoder == nil {
		return nil
	}
	return t.decoder.Close()
}

// Head returns the next bytes, up to 256 KiB, without reading them. They are valid until
// the next read.
func (t *Text) Head() []byte {
	head, _ := t.in.Peek(textBuffer)
	return head
}

// Number returns the line, from 1, where the line or object begins that was read last, or
// that of the error.
func (t *Text) Number() int { return t.number }

// Line returns the next line that is not blank, without white space around it, or io.EOF.
// It is valid until the next call. A line longer than [MaxRow] is an error after which
// the next line can be read; after a [trace.ReadError] nothing can.
func (t *Text) Line() ([]byte, error) {
	for {
		line, err := t.in.ReadSlice('\n')
		t.number++
		if err == bufio.ErrBufferFull {
			t.long = append(t.long[:0], line...)
			for err == bufio.ErrBufferFull {
				line, err = t.in.ReadSlice('\n')
				if len(t.long) <= MaxRow {
					t.long = append(t.long, line...)
				}
			}
			line = t.long
		}
		if err != nil && err != io.EOF {
			return nil, trace.ReadError{Err: err}
		}
		if len(line) > MaxRow {
			return nil, fmt.Errorf("row is longer than %d MiB", MaxRow>>20)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// objects returns the JSON objects of a text, which follow one another or are the elements
// of one array. One of more than most bytes is an error. After an error the text ends.
func (t *Text) objects(most int) units {
	return func() ([]byte, error) {
		if t.ended {
			return nil, io.EOF
		}
		err := t.seekObject()
		if err == nil {
			err = t.readObject(most)
		}
		if err != nil {
			t.ended, t.number = true, t.line
		}
		return t.long, err
	}
}

// seekObject reads the first byte of the next object.
func (t *Text) seekObject() error {
	first := t.number == 0
	c, err := t.token()
	if first && c == '[' {
		t.array = true
		c, err = t.token()
	}
	switch {
	case err != nil || first && c != ']' || !t.array:
	case c == ',':
		c, err = t.token()
	case c != ']':
		return errors.New("expected a comma or the end of the array")
	default:
		if _, err = t.token(); err == nil {
			return errors.New("text after the end of the array")
		}
		return err
	}
	switch {
	case err == io.EOF && t.array:
		return errors.New("the file ends within its array")
	case err == nil && c != '{':
		return errNotObject
	}
	t.number, t.long = t.line, append(t.long[:0], c)
	return err
}

// readObject reads the rest of an object.
func (t *Text) readObject(most int) error {
	depth, inString, escaped := 1, false, false
	for depth > 0 {
		c, err := t.byte()
		switch {
		case err == io.EOF:
			return fmt.Errorf("the file ends within the object that starts on line %d", t.number)
		case err != nil:
			return err
		case len(t.long) == most:
			return fmt.Errorf("the object that starts on line %d is longer than %d MiB", t.number, most>>20)
		}
		t.long = append(t.long, c)
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
	return nil
}

// token returns the next byte that is not white space.
func (t *Text) token() (c byte, err error) {
	for c, err = t.byte(); c == ' ' || c == '\t' || c == '\r' || c == '\n'; {
		c, err = t.byte()
	}
	return c, err
}

func (t *Text) byte() (byte, error) {
	c, err := t.in.ReadByte()
	if c == '\n' {
		t.line++
	}
	if err != nil && err != io.EOF {
		err = trace.ReadError{Err: err}
	}
	return c, err
}
