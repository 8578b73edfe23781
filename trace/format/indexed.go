package format

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"moontide/trace"
)

// maxWrong bounds the bad requests that are kept until they are returned.
const maxWrong = 10_000

// indexed is the source of a format whose requests are not in order of arrival. It reads all
// files, puts a record of each request aside, and makes rows of the records in order. T is what
// it keeps in memory about a request.
type indexed[T any] struct {
	textFiles
	layout  layout[T]
	next    units // of the current file, nil before it is open
	sorted  bool  // all files are read
	spots   []spot[T]
	records records
}

// textFiles reads the files of a trace, one after the other.
type textFiles struct {
	format   Format
	files    []*textFile
	notes    *notes
	recorded bool // Options.RecordedTimes

	current int    // the file to read
	name    string // file and line of the request that was read last
	line    int
	size    int     // tokens of a block, 0 if unknown
	sizeAt  string  // where the size was found
	wrong   []error // bad requests, to be returned first
	failed  error   // nothing more can be read
}

// layout is what formats differ in.
type layout[T any] interface {
	// split returns the lines or objects of a text.
	split(t *Text) units
	// index adds the requests of a unit.
	index(unit []byte) error
	// complete is called when all requests are added and sorted.
	complete()
	// request makes a row of a record.
	request(record []byte, s *spot[T], r *trace.Request) error
}

// units returns the next line or object of a file, or io.EOF. It is valid until the next call.
type units func() ([]byte, error)

// spot is an entry of the index.
type spot[T any] struct {
	at     float64 // ms, for the order; NaN comes first
	record place
	file   int32 // index of files
	line   int32
	about  T
}

// add adds a request.
func (x *indexed[T]) add(record []byte, at float64, line int, about T) error {
	place, err := x.records.add(record)
	if err == nil {
		x.spots = append(x.spots, spot[T]{at, place, int32(x.current), int32(line), about})
	}
	return err
}

// fail keeps the error about a line of the current file. Too many make it unreadable.
func (t *textFiles) fail(line int, err error) {
	if len(t.wrong) == maxWrong {
		err = trace.ReadError{Err: fmt.Errorf("more than %d bad requests", maxWrong)}
	}
	if err = (&trace.RowError{File: t.name, Line: line, Err: err}); skippable(err) {
		t.wrong = append(t.wrong, err)
	} else {
		t.failed = err
	}
}

// setBlockSize keeps the tokens of a block that a line declares, 0 for none.
func (t *textFiles) setBlockSize(size int) error {
	switch {
	case size == 0:
	case t.size == 0:
		t.size, t.sizeAt = size, fmt.Sprintf("%s:%d", t.name, t.line)
	case t.size != size:
		return fmt.Errorf("is not %d as in %s: %d", t.size, t.sizeAt, size)
	}
	return nil
}

func (t *textFiles) Line() int { return t.line }

func (t *textFiles) File() string { return t.name }

func (t *textFiles) BlockSize() int { return t.size }

// Close closes the open file.
func (t *textFiles) Close() error {
	var errs []error
	for _, f := range t.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// BlockSize returns the tokens of a block, 0 if no file declares it.
func (x *indexed[T]) BlockSize() int {
	x.prepare(maxWrong)
	return x.size
}

// Close closes the open file and removes the records.
func (x *indexed[T]) Close() error {
	return errors.Join(x.records.file.Close(), x.textFiles.Close())
}

func (x *indexed[T]) Read(r *trace.Request) error {
	x.prepare(1)
	switch {
	case len(x.wrong) > 0:
		err := x.wrong[0]
		x.wrong = x.wrong[1:]
		return err
	case x.failed != nil:
		return x.failed
	case len(x.spots) == 0:
		return io.EOF
	}
	s := &x.spots[0]
	x.spots = x.spots[1:]
	x.name, x.line = x.files[s.file].name, int(s.line)
	record, err := x.records.read(s.record)
	if err == nil {
		err = x.layout.request(record, s, r)
	}
	if err != nil {
		return &trace.RowError{File: x.name, Line: x.line, Err: err}
	}
	return nil
}

// prepare reads the remaining files, up to a number of bad requests.
func (x *indexed[T]) prepare(most int) {
	for x.current < len(x.files) && x.failed == nil && len(x.wrong) < most {
		f := x.files[x.current]
		if x.next == nil {
			if x.failed = f.open(); x.failed != nil {
				return
			}
			x.name, x.next = f.name, x.layout.split(f.text)
		}
		unit, err := x.next()
		if err == io.EOF {
			x.failed = f.Close()
			x.next = nil
			x.current++
			continue
		}
		if x.line = f.text.Number(); err == nil {
			if err = x.layout.index(unit); err != nil {
				err = otherFormat(err, unit, x.format)
			}
		}
		if err != nil {
			x.fail(x.line, err)
		}
	}
	if x.current == len(x.files) && x.failed == nil && !x.sorted {
		x.sorted = true
		x.sort()
		x.layout.complete()
	}
}

// sort sorts the index by time.
func (x *indexed[T]) sort() {
	slices.SortStableFunc(x.spots, func(a, b spot[T]) int { return cmp.Compare(a.at, b.at) })
}

// skippable reports whether the next row can be read after an error.
func skippable(err error) bool {
	var row *trace.RowError
	return errors.As(err, &row) && !errors.As(err, new(trace.ReadError))
}
