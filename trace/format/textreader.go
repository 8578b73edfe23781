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

var errLongRow = fmt.Errorf("row is longer than %d MiB", MaxRow>>20)

// MaxRow is the longest row that is accepted, in bytes.
const MaxRow = 64 << 20

// textBuffer is the maximum lookahead of Head, in bytes.
const textBuffer = 256 << 10

// Text reads the text of a trace file, decompressed and without a byte order
// mark. It is not safe for concurrent use.
type Text struct {
	in      *bufio.Reader
	decoder io.ReadCloser // nil if the file is not compressed
	closed  bool
	long    []byte // a line that outgrew in's buffer
	line    int
}

// NewText starts reading from in; errors call it name. Gzip and zstd are
// detected from content.
func NewText(in io.Reader, name string) (*Text, error) {
	t := &Text{in: bufio.NewReaderSize(in, textBuffer)}
	if err := t.decompress(); err != nil {
		return nil, fmt.Errorf("%s: decompressing: %w", name, err)
	}
	if head, _ := t.in.Peek(3); bytes.Equal(head, []byte("\xef\xbb\xbf")) {
		t.in.Discard(3)
	}
	const utf16 = "the file is in UTF-16: save it in UTF-8"
	for _, wrong := range []struct{ head, message string }{
		{"\xff\xfe", utf16},
		{"\xfe\xff", utf16},
		{"version https://git-lfs.github.com/spec/", "a Git LFS pointer, not the file: fetch it with git lfs pull"},
	} {
		if head, _ := t.in.Peek(len(wrong.head)); string(head) == wrong.head {
			t.Close()
			return nil, &trace.RowError{File: name, Line: 1, Err: errors.New(wrong.message)}
		}
	}
	return t, nil
}

func (t *Text) decompress() error {
	head, _ := t.in.Peek(4)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(t.in)
		if err != nil {
			return err
		}
		t.decoder = z
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(t.in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(512<<20))
		if err != nil {
			return err
		}
		t.decoder = z.IOReadCloser()
	default:
		return nil
	}
	t.in = bufio.NewReaderSize(t.decoder, textBuffer)
	return nil
}

// Close releases the decoder. It does not close what the text is read from.
func (t *Text) Close() error {
	if t.decoder == nil || t.closed {
		return nil
	}
	t.closed = true
	return t.decoder.Close()
}

// Head returns up to n of the next bytes, at most 256 KiB, without reading them.
// They are valid until the next read.
func (t *Text) Head(n int) []byte {
	head, _ := t.in.Peek(min(n, textBuffer))
	return head
}

// Read implements io.Reader, from the end of the last line on.
func (t *Text) Read(b []byte) (int, error) { return t.in.Read(b) }

// Number returns the number of the line that Line returned last, from 1.
func (t *Text) Number() int { return t.line }

// Line returns the next line without white space around it, or io.EOF. It is
// valid until the next call. A line longer than [MaxRow] is an error after which
// the next line can be read; after a [trace.ReadError] nothing can.
func (t *Text) Line() ([]byte, error) {
	line, err := t.in.ReadSlice('\n')
	t.line++
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
		return nil, fmt.Errorf("%w: %s", errLongRow, Quote(line))
	}
	if err == io.EOF && len(line) == 0 {
		return nil, io.EOF
	}
	return bytes.TrimSpace(line), nil
}
