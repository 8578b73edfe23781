package format

import (
	"bufio"
	"bytes"
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
	rows    int              // passed to Write
	flushed int              // those before the last Flush
	encoder encoder          // nil if the trace is not compressed
	to      io.Writer        // what the encoder writes to
	file    *atomicfile.File // nil if the caller closes out
}

// encoder compresses.
type encoder interface {
	Close() error
	Reset(io.Writer)
}

// NewWriter writes a trace to out, compressed if name ends in .gz or .zst. Close
// flushes it and leaves out open.
func NewWriter(out io.Writer, name string) (*Writer, error) {
	w := &Writer{to: out}
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

// Write appends one row. It does not retain r. A row that no reader accepts, such as
// one with an infinite timestamp, is an error. After an error of out all further
// writes fail.
func (w *Writer) Write(r trace.Request) error {
	w.rows++
	if err := writable(&r); err != nil {
		return fmt.Errorf("writing row %d: %w", w.rows, err)
	}
	w.row = AppendRow(w.row[:0], r)
	if len(w.row) > MaxRow {
		return fmt.Errorf("writing row %d: it has %d bytes, more than the %d that readers accept", w.rows, len(w.row), MaxRow)
	}
	w.row = append(w.row, '\n')
	if len(w.row) > w.out.Available() {
		w.out.Flush() // its error is returned again by Write
	}
	if _, err := w.out.Write(w.row); err != nil {
		return fmt.Errorf("writing trace: %w", err)
	}
	return nil
}

// writable returns an error for a row that the native reader refuses.
func writable(r *trace.Request) error {
	for _, time := range [...]struct {
		name string
		trace.Opt[float64]
	}{{"timestamp", r.Timestamp}, {"delay", r.Delay}} {
		if !(time.Value >= 0 && time.Value <= trace.MaxMS) {
			return fmt.Errorf("its %s is %v ms, outside of 0 to %v ms: choose a rate, speed or window that keeps times in range", time.name, time.Value, trace.MaxMS)
		}
	}
	for _, length := range [...]struct {
		name   string
		tokens int
	}{{"input_length", r.InputLength}, {"output_length", r.OutputLength}, {"context_len", r.ContextLen.Value}, {"unique_user_prompt_len", r.UniquePromptLen.Value}} {
		if length.tokens < 0 || length.tokens > trace.MaxLength {
			return fmt.Errorf("its %s is %d tokens, outside of 0 to %d", length.name, length.tokens, trace.MaxLength)
		}
	}
	if n := len(r.HashIDs); n > maxIDs(r.InputLength) {
		return fmt.Errorf("it has %d block ids for an input_length of %d: a block has at least one token", n, r.InputLength)
	}
	if len(r.Extra) > 0 && (validObject(r.Extra) != nil || bytes.IndexByte(r.Extra, '\n') >= 0 || r.Extra[len(r.Extra)-1] != '}') {
		return fmt.Errorf("its unknown keys are not a JSON object on one line: %s", Quote(r.Extra))
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

// Flush passes all rows so far on to out, which then is a complete trace. A compressed
// one becomes longer: what follows is compressed on its own.
func (w *Writer) Flush() error {
	if w.flushed == w.rows {
		return nil
	}
	err := w.out.Flush()
	if w.encoder != nil && err == nil {
		err = w.encoder.Close()
		w.encoder.Reset(w.to)
	}
	if err != nil {
		return fmt.Errorf("writing trace: %w", err)
	}
	w.flushed = w.rows
	return nil
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
