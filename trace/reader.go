package trace

import (
	"errors"
	"fmt"
	"io"
	"os"
)

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
	text    *Text
	file    io.Closer // nil where the caller closes it
	name    string
	opts    Options
	skipped int
	kept    []error
}

// Open reads the trace in a file.
func Open(path string, opts Options) (*Reader, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	r, err := NewReader(f, path, opts)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.file = f
	return r, nil
}

// OpenFile opens a file that a trace is to be read from, for those who look at
// it first; see [NewReader].
func OpenFile(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening trace: %w", err)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, fmt.Errorf("opening trace: %s is a folder", path)
	}
	return f, nil
}

// NewReader reads a trace from in; name stands for it in errors. Gzip and zstd
// are recognized by content.
func NewReader(in io.Reader, name string, opts Options) (*Reader, error) {
	text, err := NewText(in, name)
	if err != nil {
		return nil, err
	}
	return &Reader{text: text, name: name, opts: opts}, nil
}

// Close releases the file. Reading to the end does not.
func (r *Reader) Close() error {
	err := r.text.Close()
	if r.file != nil {
		err = errors.Join(err, r.file.Close())
		r.file = nil
	}
	return err
}

// Line is the number of the row that Read returned last, from 1.
func (r *Reader) Line() int { return r.text.Number() }

// Skipped returns how many bad rows were left out and the first few reasons.
func (r *Reader) Skipped() (rows int, reasons []error) { return r.skipped, r.kept }

// Read fills req with the next row, or returns io.EOF. It reuses the array of
// req.HashIDs, so a caller that keeps a row must copy it; [Reader.Requests]
// does. An error is a *[RowError] with the file and the line.
func (r *Reader) Read(req *Request) error {
	for {
		line, err := r.text.Line()
		if err == io.EOF {
			return io.EOF
		}
		if err == nil {
			if len(line) == 0 {
				continue
			}
			if err = ParseRow(line, req); err == nil {
				return nil
			}
		}
		bad := &RowError{r.name, r.Line(), err}
		if !r.opts.SkipBadRows || errors.As(err, new(ReadError)) {
			return bad
		}
		if r.skipped++; len(r.kept) < maxSkippedKept {
			r.kept = append(r.kept, bad)
		}
	}
}

// Requests returns the rows that are left. It can be ranged over once.
func (r *Reader) Requests() Requests { return FromRows(r) }

// Borrowed returns the rows that are left without copying them: see [Borrow].
func (r *Reader) Borrowed() Requests { return Borrow(r) }
