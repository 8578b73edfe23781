package format

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"moontide/trace"
)

// maxSkippedKept bounds the errors of skipped rows that a Reader remembers.
const maxSkippedKept = 10

// Options say how a trace is read. The zero value recognizes the format and
// stops at the first bad row.
type Options struct {
	// Format is that of the trace; "" recognizes it.
	Format Format
	// SkipBadRows reads on after a row that is not a request. The rows left
	// out are counted: see [Reader.Skipped].
	SkipBadRows bool
	// RecordedTimes gives later turns of a session the time at which they were
	// recorded, where the format knows it, instead of the pause after the turn
	// before.
	RecordedTimes bool
	// Tokens returns the number of tokens of a text; nil estimates it.
	Tokens func(text string) (int, error)
	// BlockIDs says how rows without block ids get some; "" leaves them without.
	BlockIDs BlockIDs
	// BlockSize is the tokens of a block for BlockIDs; 0 is what the trace or
	// its format says, or else [trace.DefaultBlockSize].
	BlockSize int
	// Part is the number of a trace among those that are made into one, from 0,
	// so that BlockIDs are drawn for each of them, and unique ones are its own.
	Part int
}

// Reader reads a trace of any format row by row. It is not safe for concurrent
// use.
type Reader struct {
	format  Format
	opts    Options
	source  source
	file    io.Closer // nil where the caller closes it
	folder  bool
	notes   *notes
	ids     *giver // nil where rows keep what they have
	given   int
	skipped int
	kept    []error
}

// source is the rows of a trace of one format. An error of Read that is a
// *[trace.RowError], and of no [trace.ReadError], is about one row: the next
// can be read.
type source interface {
	trace.Rows
	// Line is the line of the row that Read returned last, from 1.
	Line() int
	Close() error
}

// Open reads the trace in a file, or in a folder that is one.
func Open(path string, opts Options) (*Reader, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return openFolder(path, opts)
	}
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	again := ""
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		again = path
	}
	r, err := read(f, path, again, opts)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.file = f
	return r, nil
}

// NewReader reads a trace from in; name stands for it in errors. The requests of
// a weka or dynamo trace are kept in a temporary file until the Reader is
// closed, 4 GiB at most.
func NewReader(in io.Reader, name string, opts Options) (*Reader, error) {
	return read(in, name, "", opts)
}

// read begins to read a text, which can be read again where again is its path.
func read(in io.Reader, name, again string, opts Options) (*Reader, error) {
	text, err := NewText(in, name)
	if err != nil {
		return nil, err
	}
	told := opts.Format != ""
	if !told {
		opts.Format = Detect(text.Head(256 << 10))
	}
	r, err := newReader(opts)
	if err == nil {
		r.source, err = r.sourceOf(text, name, again, told)
	}
	if err != nil {
		text.Close() // which may fail as reading did
		return nil, err
	}
	return r, nil
}

func newReader(opts Options) (*Reader, error) {
	if _, err := ParseFormat(string(opts.Format)); err != nil {
		return nil, err
	}
	how, err := ParseBlockIDs(string(opts.BlockIDs))
	if err != nil {
		return nil, err
	}
	if opts.Part < 0 || opts.Part > mostPart {
		return nil, fmt.Errorf("part of a trace is not from 0 to %d: %d", mostPart, opts.Part)
	}
	r := &Reader{format: opts.Format, opts: opts, notes: &notes{}}
	if how != NoIDs {
		r.ids = newGiver(how, opts.Part)
	}
	return r, nil
}

// sourceOf reads the rows of one text, whose format the caller told or not.
func (r *Reader) sourceOf(text *Text, name, again string, told bool) (source, error) {
	count := counter{r.opts.Tokens}
	var parser lineParser
	switch r.format {
	case Weka:
		return r.weka([]*textFile{{name: name, path: again, text: text}}), nil
	case Dynamo:
		return r.dynamo([]*textFile{{name: name, path: again, text: text}}), nil
	case ShareGPT:
		return newShareGPT(text, name, r.notes, count), nil
	case Mooncake:
		parser = native{told: told}
	case Bailian:
		parser = newBailian(r.notes)
	case AIPerf:
		parser = &aiperfRows{notes: r.notes, count: count}
	default:
		t, _ := tableOf(r.format)
		rows, err := newCSV(t, text, name, r.notes)
		if err != nil {
			return nil, err
		}
		parser = rows
	}
	return &lines{in: text, name: name, format: r.format, parser: parser}, nil
}

func (r *Reader) weka(files []*textFile) *weka {
	return &weka{files: files, notes: r.notes, recorded: r.opts.RecordedTimes, names: map[string]string{}}
}

func (r *Reader) dynamo(files []*textFile) *dynamo {
	return &dynamo{files: files, notes: r.notes, recorded: r.opts.RecordedTimes}
}

// openFolder reads a folder whose files make up one trace.
func openFolder(path string, opts Options) (*Reader, error) {
	paths, rest, err := Files(path)
	if err != nil {
		return nil, err
	}
	if opts.Format == "" { // that the others are of it is seen when they are read
		if opts.Format, err = detectFile(paths[0]); err != nil {
			return nil, err
		}
	}
	r, err := newReader(opts)
	if err != nil {
		return nil, err
	}
	files := make([]*textFile, len(paths))
	for i, p := range paths {
		files[i] = &textFile{name: p, path: p}
	}
	r.folder = true
	switch r.format {
	case Weka:
		r.source = r.weka(files)
	case Dynamo:
		r.source = r.dynamo(files)
	default:
		return nil, fmt.Errorf("opening trace: %s is a folder, which %s is not: only weka and dynamo traces are folders; its first file is %s", path, named(r.format), paths[0])
	}
	if rest > 0 {
		r.notes.countMore("other files and folders in the folder, which are not read", rest)
	}
	return r, nil
}

func detectFile(path string) (Format, error) {
	f, err := OpenFile(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := NewText(f, path)
	if err != nil {
		return "", err
	}
	defer text.Close()
	return Detect(text.Head(256 << 10)), nil
}

// Format is that of the trace.
func (r *Reader) Format() Format { return r.format }

// BlockSize is the tokens of a block as the format or the trace says it, 0
// where neither does. Some formats are read ahead for it.
func (r *Reader) BlockSize() int {
	if s, ok := r.source.(interface{ BlockSize() int }); ok {
		return s.BlockSize()
	}
	if l, ok := r.source.(*lines); ok {
		if s, ok := l.parser.(interface{ BlockSize() int }); ok {
			return s.BlockSize()
		}
	}
	if r.given > 0 {
		return r.ids.blockSize
	}
	return 0
}

// Line is the line of the row that Read returned last, from 1, in its file.
func (r *Reader) Line() int { return r.source.Line() }

// File is the file of that row, where the trace is a folder; else "".
func (r *Reader) File() string {
	if s, ok := r.source.(interface{ File() string }); ok && r.folder {
		return s.File()
	}
	return ""
}

// Skipped returns how many bad rows were left out and the first few reasons.
func (r *Reader) Skipped() (rows int, reasons []error) { return r.skipped, r.kept }

// Notes returns what was left out and assumed, and how often, of the rows that
// have been read.
func (r *Reader) Notes() []Note {
	list := r.notes.list
	if r.given > 0 {
		list = append(list[:len(list):len(list)], Note{r.given, fmt.Sprintf("rows without block ids, which were given some (%s, of %d tokens)", r.opts.BlockIDs, r.ids.blockSize)})
	}
	return list
}

// Close releases the file. Reading to the end does not.
func (r *Reader) Close() error {
	err := r.source.Close()
	if r.file != nil {
		err = errors.Join(err, r.file.Close())
		r.file = nil
	}
	return err
}

// Read fills req with the next row, or returns io.EOF. It reuses the array of
// req.HashIDs, so a caller that keeps a row must copy it; [Reader.Requests]
// does.
func (r *Reader) Read(req *trace.Request) error {
	for {
		err := r.source.Read(req)
		if err == nil {
			if r.ids != nil && req.HashIDs == nil {
				if r.given == 0 {
					r.ids.blockSize = cmp.Or(r.opts.BlockSize, r.BlockSize(), trace.DefaultBlockSize)
				}
				r.ids.give(req)
				r.given++
			}
			return nil
		}
		if err == io.EOF {
			return err
		}
		var row *trace.RowError
		if !r.opts.SkipBadRows || !errors.As(err, &row) || errors.As(err, new(trace.ReadError)) {
			return err
		}
		if r.skipped++; len(r.kept) < maxSkippedKept {
			r.kept = append(r.kept, err)
		}
	}
}

// Requests returns the rows that are left. It can be ranged over once.
func (r *Reader) Requests() trace.Requests { return trace.FromRows(r) }

// Borrowed returns the rows that are left without copying them: see
// [trace.Borrow].
func (r *Reader) Borrowed() trace.Requests { return trace.Borrow(r) }
