package format

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"moontide/trace"
	"moontide/trace/atomicfile"
	"moontide/trace/jsonscan"
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
	io.WriteCloser
	Reset(io.Writer)
}

// NewWriter writes a trace to out, compressed if name ends in .gz or .zst. Close
// flushes it and leaves out open.
func NewWriter(out io.Writer, name string) (w *Writer, err error) {
	w = &Writer{to: out}
	switch filepath.Ext(name) {
	case ".gz":
		w.encoder = gzip.NewWriter(out)
	case ".zst":
		w.encoder, err = zstd.NewWriter(out, zstd.WithEncoderConcurrency(1))
	}
	if err != nil {
		return nil, fmt.Errorf("compressing %s: %w", name, err)
	}
	if w.encoder != nil {
		out = w.encoder
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
	for i, ms := range [...]float64{r.Timestamp.Value, r.Delay.Value} {
		if !(ms >= 0 && ms <= trace.MaxMS) {
			return fmt.Errorf("its %s is %v ms, outside of 0 to %v ms: choose a rate, speed or window that keeps times in range", [...]string{"timestamp", "delay"}[i], ms, trace.MaxMS)
		}
	}
	for i, tokens := range [...]int{r.InputLength, r.OutputLength, r.ContextLen.Value, r.UniquePromptLen.Value} {
		if tokens < 0 || tokens > trace.MaxLength {
			return fmt.Errorf("its %s is %d tokens, outside of 0 to %d", [...]string{"input_length", "output_length", "context_len", "unique_user_prompt_len"}[i], tokens, trace.MaxLength)
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
	switch {
	case err != nil:
		w.Discard()
	case w.file != nil:
		err = w.file.Close()
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

// AppendRow appends the row as one JSON object, without a line end. Keys have
// the order and spacing of published traces, so that these are reproduced byte
// for byte.
func AppendRow(dst []byte, r trace.Request) []byte {
	dst = append(dst, '{')
	if r.Timestamp.Set {
		dst = append(trace.AppendMS(append(dst, `"timestamp": `...), r.Timestamp.Value), ", "...)
	}
	dst = appendInt(dst, `"input_length": `, r.InputLength)
	dst = appendInt(dst, `, "output_length": `, r.OutputLength)
	if r.HashIDs != nil {
		dst = appendIDs(append(dst, `, "hash_ids": [`...), r.HashIDs)
	}
	dst = appendText(dst, `, "session_id": `, r.SessionID)
	dst = appendText(dst, `, "request_id": `, r.ID)
	if r.After != nil {
		dst = append(dst, `, "after": [`...)
		for i, id := range r.After {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = jsonscan.AppendString(dst, id)
		}
		dst = append(dst, ']')
	}
	if r.Delay.Set {
		dst = trace.AppendMS(append(dst, `, "delay": `...), r.Delay.Value)
	}
	dst = appendText(dst, `, "delay_kind": `, string(r.DelayKind))
	if r.ContextLen.Set {
		dst = appendInt(dst, `, "context_len": `, r.ContextLen.Value)
	}
	if r.UniquePromptLen.Set {
		dst = appendInt(dst, `, "unique_user_prompt_len": `, r.UniquePromptLen.Value)
	}
	if len(r.Extra) > len(`{}`) {
		dst = append(append(dst, ", "...), r.Extra[1:len(r.Extra)-1]...)
	}
	return append(dst, '}')
}

func appendInt(dst []byte, key string, n int) []byte {
	return strconv.AppendInt(append(dst, key...), int64(n), 10)
}

// appendText appends a member with a string, unless that is empty.
func appendText(dst []byte, key, s string) []byte {
	if s == "" {
		return dst
	}
	return jsonscan.AppendString(append(dst, key...), s)
}

// appendIDs appends numbers and the end of their array. Most ids are one more than their
// predecessor, and differ from it in the last digit only.
func appendIDs(dst []byte, ids []uint64) []byte {
	const separator = ", "
	start := 0 // of the number before
	for i, id := range ids {
		before := dst[start:]
		start = len(dst)
		if i > 0 && id == ids[i-1]+1 && id%10 != 0 {
			dst = append(dst, before...)
			dst[len(dst)-len(separator)-1]++
			continue
		}
		dst = append(strconv.AppendUint(dst, id, 10), separator...)
	}
	if len(ids) > 0 {
		dst = dst[:len(dst)-len(separator)]
	}
	return append(dst, ']')
}
