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

// maxValues limits the values read from files, to bound memory.
const maxValues = 10_000_000

// readFile opens the file named at a key and calls use.
func (f fields) readFile(key string, use func(name string, in *bufio.Reader) error) {
	if !f.has(key) {
		f.fail(f.node.place, "%s needs %s: the name of a file", f.name, key)
	}
	path := f.text(key)
	if f.node.at(key).inFile && !filepath.IsAbs(path) {
		path = filepath.Join(f.options.Folder, path)
	}
	if f.options.Open == nil {
		f.fail(f.place(key), "%s names a file, but files are not available: %s", f.label(key), quote(path))
	}
	in, err := f.options.Open(path)
	if err == nil {
		err = errors.Join(use(path, bufio.NewReader(in)), in.Close())
	}
	if err != nil {
		f.fail(f.place(key), "%s: %w", f.label(key), err)
	}
}

// column reads the values of a distribution from a file: a trace, or numbers
// separated by white space.
func (f fields) column(key string, q quantity) (values []float64) {
	f.readFile(key, func(name string, in *bufio.Reader) (err error) {
		if !isTrace(in) {
			values, err = f.numbers(name, in)
			return err
		}
		if q.column == nil {
			return fmt.Errorf("%s is a trace, which has no %s: want plain numbers", name, q.label)
		}
		return f.eachRow(name, in, func(r trace.Request) error {
			values = append(values, float64(q.column(r)))
			return nil
		})
	})
	if len(values) == 0 {
		f.fail(f.place(key), "%s holds no values", f.label(key))
	}
	return values
}

// isTrace reports whether a file is a trace, compressed or not, rather than
// plain numbers.
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

func (r *reader) numbers(name string, in *bufio.Reader) (values []float64, err error) {
	lines := bufio.NewScanner(in)
	lines.Split(bufio.ScanWords)
	for lines.Scan() {
		if err := r.countValue(name); err != nil {
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

func (r *reader) countValue(name string) error {
	if r.values++; r.values > maxValues {
		return fmt.Errorf("%s: more than %d values in this and earlier files", name, maxValues)
	}
	return nil
}

func (r *reader) eachRow(name string, in io.Reader, do func(trace.Request) error) error {
	rows, err := format.NewReader(in, name, format.Options{})
	if err != nil {
		return err
	}
	defer rows.Close()
	for row, err := range rows.Borrowed() {
		if err == nil {
			err = r.countValue(name)
		}
		if err != nil {
			return err
		}
		if err := do(row); err != nil {
			return &trace.RowError{File: name, Line: rows.Line(), Err: err}
		}
	}
	return nil
}

// lengthPair is the ISL and OSL of one request.
type lengthPair struct{ isl, osl int32 }

// pairs reads the lengths of the trace rows that keep accepts.
func (f fields) pairs(key string, keep func(lengthPair) bool) (pairs []lengthPair) {
	rows := 0
	f.readFile(key, func(name string, in *bufio.Reader) error {
		return f.eachRow(name, in, func(r trace.Request) error {
			rows++
			if p := (lengthPair{int32(r.InputLength), int32(r.OutputLength)}); keep(p) {
				pairs = append(pairs, p)
			}
			return nil
		})
	})
	if len(pairs) == 0 {
		f.fail(f.place(key), "%s has no row within the bounds (%d rows read)", f.label(key), rows)
	}
	return pairs
}

// timestamps reads the timestamps of a trace in seconds, the first at 0. It
// skips rows without one, which follow an earlier turn.
func (f fields) timestamps(key string) (times []float64) {
	origin := 0.0
	f.readFile(key, func(name string, in *bufio.Reader) error {
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
	if len(times) < 2 || times[len(times)-1] == 0 {
		f.fail(f.place(key), "%s has no two timestamps that differ", f.label(key))
	}
	return times
}
