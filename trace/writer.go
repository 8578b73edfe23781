package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Writer writes a trace row by row. It is not safe for concurrent use.
type Writer struct {
	out    *bufio.Writer
	row    []byte
	layers []io.Closer // from the outermost encoder to the file
	file   *os.File
	path   string // where Close moves file to; "" where it is written in place
}

// NewWriter writes a trace to out, compressed as the ending of name says: .gz,
// .zst or, with any other, not at all. Close flushes it and leaves out open.
func NewWriter(out io.Writer, name string) (*Writer, error) {
	w := &Writer{}
	switch {
	case strings.HasSuffix(name, ".gz"):
		z := gzip.NewWriter(out)
		w.layers = append(w.layers, z)
		out = z
	case strings.HasSuffix(name, ".zst"):
		z, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, fmt.Errorf("compressing %s: %w", name, err)
		}
		w.layers = append(w.layers, z)
		out = z
	}
	w.out = bufio.NewWriterSize(out, 256<<10)
	return w, nil
}

// Create writes a trace to a file. The file appears under its name, whole,
// when Close succeeds, and replaces what was there; until then nothing is
// touched.
func Create(path string) (*Writer, error) {
	target := path
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		if info.IsDir() {
			return nil, fmt.Errorf("creating trace: %s is a folder", path)
		}
		target = "" // a pipe or a device is written to, never replaced
	}
	f, err := openFor(path, target)
	if err != nil {
		return nil, fmt.Errorf("creating trace: %w", err)
	}
	w, err := NewWriter(f, path)
	if err != nil {
		f.Close()
		return nil, err
	}
	w.file, w.path = f, target
	return w, nil
}

func openFor(path, target string) (*os.File, error) {
	if target == "" {
		return os.OpenFile(path, os.O_WRONLY, 0)
	}
	part := fmt.Sprintf("%s.part%d", path, os.Getpid())
	return os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
}

// Write appends one row.
func (w *Writer) Write(r Request) error {
	w.row = append(AppendRow(w.row[:0], r), '\n')
	if _, err := w.out.Write(w.row); err != nil {
		return fmt.Errorf("writing trace: %w", err)
	}
	return nil
}

// WriteAll appends the rows of a stream and returns how many there were.
func (w *Writer) WriteAll(reqs Requests) (rows int, err error) {
	for r, err := range reqs {
		if err != nil {
			return rows, err
		}
		if err := w.Write(r); err != nil {
			return rows, err
		}
		rows++
	}
	return rows, nil
}

// Close writes what is buffered and puts the file in its place.
func (w *Writer) Close() error {
	errs := []error{w.out.Flush()}
	for _, l := range w.layers {
		errs = append(errs, l.Close())
	}
	if w.file != nil {
		errs = append(errs, w.file.Close())
	}
	err := errors.Join(errs...)
	if w.file != nil && w.path != "" {
		if err == nil {
			err = os.Rename(w.file.Name(), w.path)
		} else {
			os.Remove(w.file.Name())
		}
	}
	if err != nil {
		return fmt.Errorf("writing trace: %w", err)
	}
	return nil
}

// Discard gives up a trace that was begun: what Create opened is removed.
func (w *Writer) Discard() {
	if w.file == nil {
		return
	}
	w.file.Close()
	if w.path != "" {
		os.Remove(w.file.Name())
	}
}

// AppendRow appends the row as one JSON object, without a line end. Keys stand
// in the published order with the published spacing, so that a trace of that
// format comes out as the bytes it was.
func AppendRow(dst []byte, r Request) []byte {
	dst = append(dst, '{')
	if r.Timestamp.Set {
		dst = append(dst, `"timestamp": `...)
		dst = AppendMS(dst, r.Timestamp.Value)
		dst = append(dst, ", "...)
	}
	dst = append(dst, `"input_length": `...)
	dst = strconv.AppendInt(dst, int64(r.InputLength), 10)
	dst = append(dst, `, "output_length": `...)
	dst = strconv.AppendInt(dst, int64(r.OutputLength), 10)
	if r.HashIDs != nil {
		dst = append(dst, `, "hash_ids": [`...)
		for i, id := range r.HashIDs {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = strconv.AppendUint(dst, id, 10)
		}
		dst = append(dst, ']')
	}
	if r.SessionID != "" {
		dst = append(dst, `, "session_id": `...)
		dst = appendString(dst, r.SessionID)
	}
	if r.Delay.Set {
		dst = append(dst, `, "delay": `...)
		dst = AppendMS(dst, r.Delay.Value)
	}
	if r.ContextLen.Set {
		dst = append(dst, `, "context_len": `...)
		dst = strconv.AppendInt(dst, int64(r.ContextLen.Value), 10)
	}
	if r.UniquePromptLen.Set {
		dst = append(dst, `, "unique_user_prompt_len": `...)
		dst = strconv.AppendInt(dst, int64(r.UniquePromptLen.Value), 10)
	}
	if len(r.Extra) > len(`{}`) {
		dst = append(dst, ", "...)
		dst = append(dst, r.Extra[1:len(r.Extra)-1]...)
	}
	return append(dst, '}')
}

// AppendMS appends milliseconds as a decimal number: the shortest that reads
// back as the same value, and never with an exponent.
func AppendMS(dst []byte, ms float64) []byte {
	if i := int64(ms); float64(i) == ms && i < maxMS && i > -maxMS {
		return strconv.AppendInt(dst, i, 10)
	}
	return strconv.AppendFloat(dst, ms, 'f', -1, 64)
}

// appendString appends s as a JSON string.
func appendString(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			quoted, err := json.MarshalToString(s)
			if err != nil { // not UTF-8
				quoted, _ = json.MarshalToString(strings.ToValidUTF8(s, "\ufffd"))
			}
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}
