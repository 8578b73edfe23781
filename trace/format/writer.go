package format

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"moontide/trace"
	"moontide/trace/atomicfile"
)

// Writer writes a trace row by row. It is not safe for concurrent use.
type Writer struct {
	out     *bufio.Writer    // always ends in a whole row
	row     []byte           // to be reused
	encoder io.Closer        // nil if the trace is not compressed
	file    *atomicfile.File // nil if the caller closes out
}

// NewWriter writes a trace to out, compressed if name ends in .gz or .zst. Close
// flushes it and leaves out open.
func NewWriter(out io.Writer, name string) (*Writer, error) {
	w := &Writer{}
	switch {
	case strings.HasSuffix(name, ".gz"):
		z := gzip.NewWriter(out)
		w.encoder = z
		out = z
	case strings.HasSuffix(name, ".zst"):
		z, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, fmt.Errorf("compressing %s: %w", name, err)
		}
		w.encoder = z
		out = z
	}
	w.out = bufio.NewWriterSize(out, 256<<10)
	return w, nil
}

// Create writes a trace to a file. The file replaces any existing one when Close
// succeeds; until then the path is unchanged: see package atomicfile.
func Create(path string) (*Writer, error) {
	f, err := atomicfile.Create(path)
	if err != nil {
		return nil, fmt.Errorf("creating trace: %w", err)
	}
	w, err := NewWriter(f, path)
	if err != nil {
		f.Discard()
		return nil, err
	}
	w.file = f
	return w, nil
}

// Write appends one row. It does not retain r. After an error all further writes
// fail.
func (w *Writer) Write(r trace.Request) error {
	w.row = append(AppendRow(w.row[:0], r), '\n')
	if len(w.row) > w.out.Available() {
		w.out.Flush() // its error is returned again by Write
	}
	if _, err := w.out.Write(w.row); err != nil {
		return fmt.Errorf("writing trace: %w", err)
	}
	return nil
}

// WriteAll appends the rows of a stream and returns their number.
func (w *Writer) WriteAll(reqs trace.Requests) (rows int, err error) {
	for r, err := range reqs {
		if err == nil {
			err = w.Write(r)
		}
		if err != nil {
			return rows, err
		}
		rows++
	}
	return rows, nil
}

// Close flushes the buffer and moves the file into place.
func (w *Writer) Close() error {
	err := w.out.Flush()
	if w.encoder != nil {
		err = errors.Join(err, w.encoder.Close())
	}
	if w.file != nil {
		if err == nil {
			err = w.file.Close()
		} else {
			w.file.Discard()
		}
	}
	if err != nil {
		return fmt.Errorf("writing trace: %w", err)
	}
	return nil
}

// Discard abandons the trace and removes the file that Create opened.
func (w *Writer) Discard() {
	if w.file != nil {
		w.file.Discard()
	}
}
