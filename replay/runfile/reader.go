package runfile

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"unicode/utf8"

	"moontide/replay"
	"moontide/replay/settings"
	"moontide/trace"
	"moontide/trace/format"
	"moontide/trace/jsonscan"
)

// Reader reads a run's folder.
type Reader struct {
	Run     Run
	Gaps    []GapCount // set if the records have no gaps
	file    *os.File
	text    *format.Text
	path    string
	ahead   int // bytes parsed at a time
	damaged int
	reasons []error
}

// Read reads a file of a run's folder. One that is not regular is an error: a named pipe
// would block.
func Read(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.ReadFile(path)
}

// Open opens the folder of a run, even of one that was killed. In that case, the
// number of rows sent is read from the journal.
func Open(dir string) (*Reader, error) {
	for _, name := range []string{RunFile, RequestsFile, SamplesFile, GapsFile, SentFile} {
		// Opening a named pipe would block.
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("not a run's folder: %s is not a regular file", filepath.Join(dir, name))
		}
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("not a run's folder: %s is a file", dir)
	}
	text, err := os.ReadFile(filepath.Join(dir, RunFile))
	if err != nil {
		return nil, fmt.Errorf("not a run's folder: %w", err)
	}
	r := &Reader{path: filepath.Join(dir, RequestsFile), ahead: batchSize}
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("reading %s: invalid UTF-8", filepath.Join(dir, RunFile))
	}
	// Compiling sonic's decoder for one object costs more than it saves.
	if r.Run, err = Unmarshal(text); err != nil {
		if _, readable := errors.AsType[*settings.Error](err); !readable {
			err = jsonscan.Fault(err)
		}
		return nil, fmt.Errorf("reading %s: %w", filepath.Join(dir, RunFile), err)
	}
	if err := r.Run.checkCounts(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Join(dir, RunFile), err)
	}
	if err := r.open(dir); err != nil {
		return nil, fmt.Errorf("reading run: %w", err)
	}
	return r, nil
}

func (r *Reader) open(dir string) error {
	if r.Run.Ended.IsZero() {
		sent, err := sentRows(dir, r.Run.Rows)
		if err != nil {
			return err
		}
		if sent > 0 {
			r.Run.Sent, r.Run.NotSent = sent, r.Run.Rows-sent
		}
	}
	gaps, err := readGaps(dir)
	if err != nil {
		return err
	}
	r.Gaps = gaps.list()
	if r.file, err = format.OpenFile(r.path); err != nil {
		return err
	}
	if r.text, err = format.NewText(r.file, r.path); err != nil {
		r.file.Close()
	}
	return err
}

// Damaged returns the number of unreadable lines and the first ten errors. A kill
// may leave one such line.
func (r *Reader) Damaged() (lines int, reasons []error) { return r.damaged, r.reasons }

// Close closes the folder's files.
func (r *Reader) Close() error { return errors.Join(r.text.Close(), r.file.Close()) }

// Records returns the records in the order in which their requests ended. It can
// be ranged over once. Records are parsed ahead on all CPU cores.
func (r *Reader) Records() iter.Seq2[replay.Record, error] {
	return func(yield func(replay.Record, error) bool) {
		stop := make(chan struct{})
		var working sync.WaitGroup
		defer working.Wait()
		defer close(stop)
		for b := range r.batches(stop, &working) {
			<-b.parsed
			for i := range b.lines {
				l := &b.lines[i]
				switch {
				case l.bad != nil:
					r.damage(l)
				case !yield(l.rec, l.err) || l.err != nil:
					return
				}
			}
		}
	}
}

// damage counts an unreadable line.
func (r *Reader) damage(l *recordedLine) {
	const mostReasons = 10
	if r.damaged++; len(r.reasons) < mostReasons {
		r.reasons = append(r.reasons, &trace.RowError{File: r.path, Line: l.number, Err: l.bad})
	}
}

// batch is a group of consecutive lines.
type batch struct {
	text   []byte
	lines  []recordedLine
	parsed chan struct{} // closed when all are parsed
}

// recordedLine is a line and its result: a record, a reason to skip the line, or
// an error that ends the iteration.
type recordedLine struct {
	number   int
	from, to int // offsets in the text
	rec      replay.Record
	bad, err error
}

// batchSize is the amount of text parsed at a time, in bytes, and leastBatch that
// with many readers.
const (
	batchSize  = 256 << 10
	leastBatch = 16 << 10
)

// Share divides the memory for records that are parsed ahead between some readers
// that are used at the same time. It must be called before [Reader.Records].
func (r *Reader) Share(readers int) { r.ahead = max(batchSize/max(readers, 1), leastBatch) }

// batches reads and parses the file, in order, until stop is closed.
func (r *Reader) batches(stop <-chan struct{}, working *sync.WaitGroup) <-chan *batch {
	inOrder := make(chan *batch, 2*runtime.GOMAXPROCS(0))
	working.Go(func() {
		defer close(inOrder)
		for more := true; more; {
			var b *batch
			b, more = r.readBatch()
			working.Go(b.parse)
			select {
			case inOrder <- b:
			case <-stop:
				return
			}
		}
	})
	return inOrder
}

// readBatch reads lines and reports whether there may be more.
func (r *Reader) readBatch() (b *batch, more bool) {
	b = &batch{text: make([]byte, 0, r.ahead+r.ahead/8), parsed: make(chan struct{})}
	for len(b.text) < r.ahead {
		line, err := r.text.Line()
		if err == io.EOF {
			return b, false
		}
		l := recordedLine{number: r.text.Number(), from: len(b.text)}
		b.text = append(b.text, line...)
		l.to = len(b.text)
		switch {
		case errors.As(err, new(trace.ReadError)):
			l.err = &trace.RowError{File: r.path, Line: l.number, Err: err}
			b.lines = append(b.lines, l)
			return b, false
		case err != nil:
			l.bad = err
		}
		b.lines = append(b.lines, l)
	}
	return b, true
}

func (b *batch) parse() {
	defer close(b.parsed)
	a := newArena(len(b.text))
	for i := range b.lines {
		l := &b.lines[i]
		if l.bad != nil || l.err != nil {
			continue
		}
		line := b.text[l.from:l.to]
		if scanRecord(line, &l.rec, &a) {
			continue
		}
		var row trace.Request
		if l.bad = format.ParseRow(line, &row); l.bad != nil {
			continue
		}
		l.rec, l.bad = parseRecord(row)
	}
}
