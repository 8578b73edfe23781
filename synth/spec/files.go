package spec

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"moontide/trace"
	"moontide/trace/format"
)

// maxValues bounds the values that a description takes from files, and so
// memory.
const maxValues = 10_000_000

// opener opens the files that a description names.
type opener struct {
	open   func(path string) (io.ReadCloser, error)
	folder string
}

// column is what a law takes from the rows of a trace.
type column int

const (
	noColumn column = iota
	islColumn
	oslColumn
)

// path returns the file named at a key, as the caller can open it: names in a
// description are relative to its folder.
func (f fields) path(key string) string {
	name := f.text(key)
	if n := f.node.at(key); n != nil && n.inFile && !filepath.IsAbs(name) {
		return filepath.Join(f.open.folder, name)
	}
	return name
}

// read opens the file named at a key and hands it to use.
func (f fields) read(key string, use func(name string, in *bufio.Reader) error) {
	if !f.has(key) {
		f.fail(f.node.place, "%s needs %s: the name of a file", f.name, key)
	}
	path := f.path(key)
	if f.failed() {
		return
	}
	if f.open.open == nil {
		f.fail(f.place(key), "%s names a file, and there are none here: %s", f.label(key), quote(path))
		return
	}
	in, err := f.open.open(path)
	if err == nil {
		err = errors.Join(use(path, bufio.NewReader(in)), in.Close())
	}
	if err != nil {
		f.fail(f.place(key), "%s: %w", f.label(key), err)
	}
}

// column reads the values of a law from a file: from a trace, or from plain
// numbers with white space between them.
func (f fields) column(key string, q quantity) (values []float64) {
	f.read(key, func(name string, in *bufio.Reader) error {
		if !isTrace(in) {
			var err error
			values, err = f.numbers(name, in)
			return err
		}
		if q.column == noColumn {
			return fmt.Errorf("%s: a trace, which says nothing about %s: want plain numbers", name, q.key)
		}
		return f.eachRow(name, in, func(r trace.Request) error {
			value := r.InputLength
			if q.column == oslColumn {
				value = r.OutputLength
			}
			values = append(values, float64(value))
			return nil
		})
	})
	if len(values) == 0 {
		f.fail(f.place(key), "%s holds no values", f.label(key))
		return []float64{0}
	}
	return values
}

// isTrace tells a trace, compressed or not, from plain numbers.
func isTrace(in *bufio.Reader) bool {
	head, _ := in.Peek(512)
	for _, c := range head {
		switch c {
		case ' ', '\t', '\r', '\n', 0xef, 0xbb, 0xbf: // white space and a byte order mark
		default:
			return c == '{' || c == 0x1f || c == 0x28 || c == 'v' // object, gzip, zstd, Git LFS pointer
		}
	}
	return false
}

func (r *reading) numbers(name string, in *bufio.Reader) (values []float64, err error) {
	lines := bufio.NewScanner(in)
	lines.Split(bufio.ScanWords)
	for lines.Scan() {
		if err := r.oneMore(name); err != nil {
			return nil, err
		}
		x, ok := parseNumber(lines.Text())
		if !ok {
			return nil, fmt.Errorf("%s: value %d is not a number: %s", name, len(values)+1, quote(lines.Text()))
		}
		values = append(values, x)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return values, nil
}

// oneMore counts the values that are kept.
func (r *reading) oneMore(name string) error {
	if r.values++; r.values > maxValues {
		return fmt.Errorf("%s: more than %d values, with those of files before it", name, maxValues)
	}
	return nil
}

func (r *reading) eachRow(name string, in io.Reader, do func(trace.Request) error) error {
	rows, err := format.NewReader(in, name, format.Options{})
	if err != nil {
		return err
	}
	defer rows.Close()
	var row trace.Request
	for {
		if err := rows.Read(&row); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := r.oneMore(name); err != nil {
			return err
		}
		if err := do(row); err != nil {
			return &trace.RowError{File: name, Line: rows.Line(), Err: err}
		}
	}
}

// pair is the ISL and OSL of one request.
type pair struct{ isl, osl int32 }

// pairs reads the ISL and OSL of a trace's rows together; keep says which.
func (f fields) pairs(key string, keep func(pair) bool) (pairs []pair) {
	rows := 0
	f.read(key, func(name string, in *bufio.Reader) error {
		return f.eachRow(name, in, func(r trace.Request) error {
			rows++
			if p := (pair{int32(r.InputLength), int32(r.OutputLength)}); keep(p) {
				pairs = append(pairs, p)
			}
			return nil
		})
	})
	if !f.failed() && len(pairs) == 0 {
		f.fail(f.place(key), "%s has no row within the bounds, of %d", f.label(key), rows)
	}
	return pairs
}

// arrivals reads the timestamps of a trace in seconds, the first at 0. Rows
// that only follow an earlier turn have none and are passed over.
func (f fields) arrivals(key string) (times []float64) {
	origin := 0.0
	f.read(key, func(name string, in *bufio.Reader) error {
		return f.eachRow(name, in, func(r trace.Request) error {
			if !r.Timestamp.Set {
				return nil
			}
			at := r.Timestamp.Value / 1000
			if len(times) == 0 {
				origin = at
			}
			if at -= origin; len(times) > 0 && at < times[len(times)-1] {
				return fmt.Errorf("goes back in time, to %v s: sort the trace first", at)
			}
			times = append(times, at)
			return nil
		})
	})
	if !f.failed() && (len(times) < 2 || times[len(times)-1] == 0) {
		f.fail(f.place(key), "%s has no two timestamps that differ", f.label(key))
	}
	return times
}
