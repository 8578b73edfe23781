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

// indexed is the source of a format whose requests are not in order of arrival.
// It indexes all files, sorts the index, and reads the requests again one by one,
// as their block ids may not fit in memory. T is what the index keeps about a
// request besides its place.
type indexed[T any] struct {
	textFiles
	layout  layout[T]
	current int     // the file to index next
	sorted  bool    // the index is complete
	wrong   []error // bad requests, to be returned first
	failed  error   // nothing more can be read
	spots   []spot[T]
}

// layout is the format of indexed files.
type layout[T any] interface {
	// index adds the requests of an open file to the index. After a skippable
	// error it is called again for the rest of the file.
	index(f *textFile) error
	// complete is called when the index is complete and sorted.
	complete()
	// request parses the request at a spot.
	request(raw []byte, s *spot[T], r *trace.Request) error
}

// spot is an entry of the index.
type spot[T any] struct {
	at           float64 // ms, for the order; NaN comes first
	file         *textFile
	offset       int64
	length, line int32
	about        T
}

// add adds the request on the current line of a file.
func (x *indexed[T]) add(f *textFile, line []byte, at float64, about T) error {
	offset, err := x.offset(f, line)
	if err == nil {
		x.spots = append(x.spots, spot[T]{at, f, offset, int32(len(line)), int32(x.line), about})
	}
	return err
}

// objects calls keep for the objects of a file, with their offsets and lines, and keeps
// the errors about them.
func (x *indexed[T]) objects(f *textFile, all *objectReader, keep func(raw []byte, offset int64, line int) error) {
	x.name = f.name
	for x.failed == nil {
		raw, err := all.next()
		if err == io.EOF {
			return
		}
		if err != nil { // the next object cannot be found
			x.fail(f, all.line, err)
			return
		}
		if err := keep(raw, f.base+all.start, all.atLine); err != nil {
			x.fail(f, all.atLine, err)
		}
	}
}

// fail keeps the error about a part of a file. Too many make the file unreadable.
func (x *indexed[T]) fail(f *textFile, line int, err error) {
	if len(x.wrong) == maxWrong {
		err = trace.ReadError{Err: fmt.Errorf("more than %d bad requests", maxWrong)}
	}
	if err = (&trace.RowError{File: f.name, Line: line, Err: err}); skippable(err) {
		x.wrong = append(x.wrong, err)
	} else {
		x.failed = err
	}
}

// failAt ends the trace with an error about the request at a spot.
func (x *indexed[T]) failAt(s *spot[T], err error) {
	x.failed = &trace.RowError{File: s.file.name, Line: int(s.line), Err: trace.ReadError{Err: err}}
}

// BlockSize returns the tokens of a block, 0 if no file declares it.
func (x *indexed[T]) BlockSize() int {
	x.prepare(maxWrong)
	return x.size
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
	x.name, x.line = s.file.name, int(s.line)
	raw, err := x.readAt(s.file, s.offset, s.length)
	if err != nil {
		err = trace.ReadError{Err: err}
	} else {
		err = x.layout.request(raw, s, r)
	}
	if err != nil {
		return &trace.RowError{File: x.name, Line: x.line, Err: err}
	}
	return nil
}

// prepare indexes the remaining files, up to a number of bad requests.
func (x *indexed[T]) prepare(most int) {
	for x.current < len(x.files) && x.failed == nil && len(x.wrong) < most {
		f := x.files[x.current]
		err := f.open()
		if err == nil {
			err = x.layout.index(f)
		}
		if skippable(err) {
			x.wrong = append(x.wrong, err)
			continue
		}
		x.current++
		x.failed = errors.Join(x.failed, err, f.Close())
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
