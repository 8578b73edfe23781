package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// MaxRow is the longest row in bytes that is read; a longer one is an error.
const MaxRow = 64 << 20

// maxSkippedKept bounds the errors of skipped rows that a Reader remembers.
const maxSkippedKept = 10

// Options say how a trace is read. The zero value stops at the first bad row.
type Options struct {
	// SkipBadRows reads on after a row that is not a request. The rows left
	// out are counted: see [Reader.Skipped].
	SkipBadRows bool
}

// RowError is what is wrong with one line of a trace.
type RowError struct {
	File string
	Line int // from 1
	Err  error
}

func (e *RowError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns the error without the place.
func (e *RowError) Unwrap() error { return e.Err }

// Reader reads a trace row by row. It is not safe for concurrent use.
type Reader struct {
	name    string
	opts    Options
	in      *bufio.Reader
	long    []byte // a row that outgrew in's buffer
	line    int
	skipped int
	kept    []error
	scratch Request
	ids     []uint64 // the slab from which Requests cuts ids
	closers []io.Closer
}

// Open reads the trace in a file.
func Open(path string, opts Options) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening trace: %w", err)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, fmt.Errorf("opening trace: %s is a folder", path)
	}
	r, err := NewReader(f, path, opts)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.closers = append(r.closers, f)
	return r, nil
}

// NewReader reads a trace from in; name stands for it in errors. Gzip and zstd
// are recognized by content.
func NewReader(in io.Reader, name string, opts Options) (*Reader, error) {
	r := &Reader{name: name, opts: opts, in: bufio.NewReaderSize(in, 256<<10)}
	if err := r.decompress(); err != nil {
		return nil, fmt.Errorf("%s: decompressing: %w", name, err)
	}
	if head, _ := r.in.Peek(3); bytes.Equal(head, []byte("\xef\xbb\xbf")) {
		r.in.Discard(3)
	}
	const lfs = "version https://git-lfs.github.com/spec/"
	if head, _ := r.in.Peek(len(lfs)); string(head) == lfs {
		r.Close()
		return nil, &RowError{name, 1, errors.New("a Git LFS pointer, not the file it stands for: fetch it with git lfs pull")}
	}
	return r, nil
}

func (r *Reader) decompress() error {
	head, _ := r.in.Peek(4)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(r.in)
		if err != nil {
			return err
		}
		r.closers = append(r.closers, z)
		r.in = bufio.NewReaderSize(z, 256<<10)
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(r.in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(512<<20))
		if err != nil {
			return err
		}
		closer := z.IOReadCloser()
		r.closers = append(r.closers, closer)
		r.in = bufio.NewReaderSize(closer, 256<<10)
	}
	return nil
}

// Close releases the file. Reading to the end does not.
func (r *Reader) Close() error {
	var errs []error
	for _, c := range r.closers {
		errs = append(errs, c.Close())
	}
	r.closers = nil
	return errors.Join(errs...)
}

// Line is the number of the row that Read returned last, from 1.
func (r *Reader) Line() int { return r.line }

// Skipped returns how many bad rows were left out and the first few reasons.
func (r *Reader) Skipped() (rows int, reasons []error) { return r.skipped, r.kept }

// Read fills req with the next row, or returns io.EOF. It reuses the array of
// req.HashIDs, so a caller that keeps a row must copy it; [Reader.Requests]
// does. An error is a *[RowError] with the file and the line.
func (r *Reader) Read(req *Request) error {
	for {
		line, err := r.next()
		if err == io.EOF {
			return io.EOF
		}
		if err == nil {
			if len(line) == 0 {
				continue
			}
			if err = parseRow(line, req); err == nil {
				return nil
			}
		}
		bad := &RowError{r.name, r.line, err}
		var damaged readError
		if !r.opts.SkipBadRows || errors.As(err, &damaged) {
			return bad
		}
		if r.skipped++; len(r.kept) < maxSkippedKept {
			r.kept = append(r.kept, bad)
		}
	}
}

// readError is a failure of the file, not of a row: nothing can be skipped.
type readError struct{ error }

func (e readError) Unwrap() error { return e.error }

// next returns the next line without its end and without white space around
// it. It is valid until the next call.
func (r *Reader) next() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	r.line++
	if err == bufio.ErrBufferFull {
		r.long = append(r.long[:0], line...)
		for err == bufio.ErrBufferFull {
			line, err = r.in.ReadSlice('\n')
			if len(r.long) <= MaxRow {
				r.long = append(r.long, line...)
			}
		}
		line = r.long
	}
	if err != nil && err != io.EOF {
		return nil, readError{fmt.Errorf("reading: %w", err)}
	}
	if len(line) > MaxRow {
		return nil, fmt.Errorf("row is longer than %d MiB: %s", MaxRow>>20, quote(line))
	}
	if err == io.EOF && len(line) == 0 {
		return nil, io.EOF
	}
	return bytes.TrimSpace(line), nil
}

// Requests returns the rows that are left. It can be ranged over once.
func (r *Reader) Requests() Requests {
	return func(yield func(Request, error) bool) {
		for {
			switch err := r.Read(&r.scratch); err {
			case nil:
				if !yield(r.own(r.scratch), nil) {
					return
				}
			case io.EOF:
				return
			default:
				yield(Request{}, err)
				return
			}
		}
	}
}

// own gives a row that shares Read's array an array of its own, cut from a
// slab so that a small row costs no allocation.
func (r *Reader) own(req Request) Request {
	n := len(req.HashIDs)
	if n == 0 {
		return req
	}
	if len(r.ids) < n {
		r.ids = make([]uint64, max(n, 4096))
	}
	copy(r.ids, req.HashIDs)
	req.HashIDs, r.ids = r.ids[:n:n], r.ids[n:]
	return req
}
