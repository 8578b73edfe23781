package format

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"moontide/trace"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// MaxRow is the longest row in bytes that is read; a longer one is an error.
const MaxRow = 64 << 20

// textBuffer is how far a Text can be looked into.
const textBuffer = 256 << 10

// Text is what a file of a trace says, whatever its format: decompressed, and
// without a byte order mark. It is not safe for concurrent use.
type Text struct {
	in     *bufio.Reader
	packed io.ReadCloser // the decoder, nil where there is none
	closed bool
	long   []byte // a line that outgrew in's buffer
	line   int
	begin  int64 // of the line, in the text
	next   int64 // where it ended
}

// NewText begins to read from in; name stands for it in errors. Gzip and zstd
// are recognized by content.
func NewText(in io.Reader, name string) (*Text, error) {
	t := &Text{in: bufio.NewReaderSize(in, textBuffer)}
	if err := t.decompress(); err != nil {
		return nil, fmt.Errorf("%s: decompressing: %w", name, err)
	}
	if head, _ := t.in.Peek(3); bytes.Equal(head, []byte("\xef\xbb\xbf")) {
		t.in.Discard(3)
	}
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} {
		if head, _ := t.in.Peek(2); string(head) == mark {
			t.Close()
			return nil, &trace.RowError{File: name, Line: 1, Err: errors.New("a text in UTF-16: save it in UTF-8")}
		}
	}
	const lfs = "version https://git-lfs.github.com/spec/"
	if head, _ := t.in.Peek(len(lfs)); string(head) == lfs {
		t.Close()
		return nil, &trace.RowError{File: name, Line: 1, Err: errors.New("a Git LFS pointer, not the file it stands for: fetch it with git lfs pull")}
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
		t.packed = z
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(t.in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(512<<20))
		if err != nil {
			return err
		}
		t.packed = z.IOReadCloser()
	default:
		return nil
	}
	t.in = bufio.NewReaderSize(t.packed, textBuffer)
	return nil
}

// Close releases the decoder. What the text was read from is the caller's.
func (t *Text) Close() error {
	if t.packed == nil || t.closed {
		return nil
	}
	t.closed = true
	return t.packed.Close()
}

// Packed reports whether the text is compressed in its file.
func (t *Text) Packed() bool { return t.packed != nil }

// Head is up to n bytes of what comes next, at most 256 KiB, without reading
// them. It is valid until the next read.
func (t *Text) Head(n int) []byte {
	head, _ := t.in.Peek(min(n, textBuffer))
	return head
}

// Read reads on from where the last line ended.
func (t *Text) Read(b []byte) (int, error) { return t.in.Read(b) }

// Number is the number of the line that Line returned last, from 1.
func (t *Text) Number() int { return t.line }

// At is where the line that Line returned last begins, in bytes of the text:
// decompressed, and behind a byte order mark. It holds where nothing but Line
// has read.
func (t *Text) At() int64 { return t.begin }

// Line returns the next line without its end and without white space around
// it, or io.EOF. It is valid until the next call. A line of more than [MaxRow]
// bytes is an error, behind which the next line can be read; a [trace.ReadError] is
// not.
func (t *Text) Line() ([]byte, error) {
	line, err := t.in.ReadSlice('\n')
	t.line++
	t.begin = t.next
	t.next += int64(len(line))
	if err == bufio.ErrBufferFull {
		t.long = append(t.long[:0], line...)
		for err == bufio.ErrBufferFull {
			line, err = t.in.ReadSlice('\n')
			t.next += int64(len(line))
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
		return nil, fmt.Errorf("row is longer than %d MiB: %s", MaxRow>>20, Quote(line))
	}
	if err == io.EOF && len(line) == 0 {
		return nil, io.EOF
	}
	bare := bytes.TrimSpace(line)
	t.begin += int64(cap(line) - cap(bare)) // which is cut off in front
	return bare, nil
}
