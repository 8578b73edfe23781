package format

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"

	"moontide/trace"
	"moontide/trace/log"
)

// maxReasons bounds the errors that Reader.Skipped returns.
const maxReasons = 10

// Options configures a Reader. The zero value detects the format and stops at the
// first bad row.
type Options struct {
	// Format is the format of the trace; "" detects it.
	Format Format
	// SkipBadRows continues after a bad row. See [Reader.Skipped].
	SkipBadRows bool
	// RecordedTimes gives later turns of a session their recorded time, if the
	// format has it, instead of a delay after the previous turn.
	RecordedTimes bool
	// Tokens counts the tokens of a text; nil estimates them.
	Tokens func(text string) (int, error)
	// Record returns how the texts of an [OpenAILog] are replaced by block ids. It is
	// called if the trace is one; nil refuses it.
	Record func() (log.Config, error)
	// UniqueIDs assigns block ids to rows without them, each unique, so that nothing is
	// shared. They are the same every time that a trace is read.
	UniqueIDs bool
	// BlockSize is the number of tokens per block for UniqueIDs; 0 means that of
	// the trace or format, or else [trace.DefaultBlockSize].
	BlockSize int
	// Part numbers the traces that are merged into one, from 0, so that their UniqueIDs
	// differ.
	Part int
}

// Reader reads a trace of any format row by row. It is not safe for concurrent
// use.
type Reader struct {
	format   Format
	opts     Options
	source   source
	folder   bool
	notes    *notes
	ids      *idGenerator // nil to leave rows as they are
	assigned int          // rows with ids of idGenerator
	skipped  int
	reasons  []error
}

// source reads the rows of one format. After an error of Read that is a
// *[trace.RowError] without a [trace.ReadError], the next row can be read.
type source interface {
	trace.Rows
	// Line is the line of the row that Read returned last, from 1.
	Line() int
	Close() error
}

// Open opens a trace: a file, or a folder of weka or dynamo files or request logs.
func Open(path string, opts Options) (*Reader, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		paths, rest, err := Files(path)
		if err != nil {
			return nil, err
		}
		files := make([]*textFile, len(paths))
		for i, p := range paths {
			files[i] = &textFile{name: p}
		}
		r, err := openFiles(files, path, opts)
		if err == nil && rest > 0 {
			r.notes.countMany("other files and folders in the folder, not read", rest)
		}
		return r, err
	}
	return openFiles([]*textFile{{name: path}}, "", opts)
}

// NewReader reads a trace from in; errors call it name.
func NewReader(in io.Reader, name string, opts Options) (*Reader, error) {
	text, err := NewText(in, name)
	if err != nil {
		return nil, err
	}
	return openFiles([]*textFile{{name: name, text: text}}, "", opts)
}

// openFiles reads a trace of one file, or of all files of a folder.
func openFiles(files []*textFile, folder string, opts Options) (r *Reader, err error) {
	first := files[0]
	defer func() {
		if err != nil {
			first.Close() // may fail as reading did
		}
	}()
	explicit := opts.Format != ""
	if folder == "" || !explicit { // the other files are checked as they are read
		if err := first.open(); err != nil {
			return nil, err
		}
	}
	if !explicit {
		opts.Format = Detect(first.text.Head(textBuffer))
	}
	if r, err = newReader(opts); err != nil {
		return nil, err
	}
	r.folder = folder != ""
	t := textFiles{files: files, notes: r.notes, recorded: r.opts.RecordedTimes}
	if r.folder && !slices.Contains([]Format{Weka, Dynamo, OpenAILog}, r.format) {
		return nil, fmt.Errorf("opening trace: %s is a folder, but only weka and dynamo traces and request logs can be folders: its first file, %s, is %s", folder, first.name, named(r.format))
	}
	switch r.format {
	case Weka:
		r.source = newWeka(t)
	case Dynamo:
		r.source = newDynamo(t)
	case TraceLab:
		r.source = newTraceLab(t)
	case OpenAILog:
		r.source, err = newRequestLog(t, opts.Record)
	case ShareGPT:
		r.source = newShareGPT(first, r.notes, tokenCounter{r.opts.Tokens})
	default:
		r.source, err = r.newLines(first, explicit)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func newReader(opts Options) (*Reader, error) {
	if _, err := ParseFormat(string(opts.Format)); err != nil {
		return nil, err
	}
	if opts.Part < 0 || opts.Part > maxPart {
		return nil, fmt.Errorf("part %d is out of range: 0 to %d", opts.Part, maxPart)
	}
	r := &Reader{format: opts.Format, opts: opts, notes: &notes{}}
	if opts.UniqueIDs {
		r.ids = newIDGenerator(opts.Part)
	}
	return r, nil
}

// newLines reads the rows of one file with a row a line. explicit: the caller named the format.
func (r *Reader) newLines(f *textFile, explicit bool) (l *lines, err error) {
	l = &lines{in: f.text, file: f, format: r.format}
	switch r.format {
	case Mooncake:
		l.parser = nativeRows{explicit}
	case Bailian:
		l.parser = newBailian(r.notes)
	case AIPerf:
		l.parser = &aiperfRows{notes: r.notes, counter: tokenCounter{r.opts.Tokens}}
	default:
		l.parser, err = newCSV(r.format, f.text, f.name, r.notes)
	}
	return l, err
}

// Format returns the format of the trace.
func (r *Reader) Format() Format { return r.format }

// HashedIDs reports whether the block ids of the format are hashes, most of them
// above 2^53: see [trace.Renumber].
func (r *Reader) HashedIDs() bool {
	return slices.Contains([]Format{Weka, Dynamo, Bailian, TraceLab}, r.format)
}

// BlockSize returns the tokens of a block that the format or trace declares, or
// 0. It reads all of a weka or dynamo trace to find it.
func (r *Reader) BlockSize() int {
	var declares any = r.source
	if l, ok := r.source.(*lines); ok {
		declares = l.parser
	}
	if s, ok := declares.(interface{ BlockSize() int }); ok {
		return s.BlockSize()
	}
	if r.assigned > 0 {
		return r.ids.blockSize
	}
	return 0
}

// Line returns the line, in its file, of the row that Read returned last, from 1.
func (r *Reader) Line() int { return r.source.Line() }

// File returns the file of that row if the trace is a folder, or "".
func (r *Reader) File() string {
	if s, ok := r.source.(interface{ File() string }); ok && r.folder {
		return s.File()
	}
	return ""
}

// Skipped returns the number of bad rows that were skipped and the first ten
// errors.
func (r *Reader) Skipped() (rows int, reasons []error) { return r.skipped, r.reasons }

// Notes describes the data dropped or assumed in the rows read so far.
func (r *Reader) Notes() []Note {
	list := r.notes.list
	if r.assigned > 0 {
		list = append(list[:len(list):len(list)], Note{r.assigned, fmt.Sprintf("rows without block ids, which got generated ones (unique, %d tokens a block)", r.ids.blockSize)})
	}
	return list
}

// Messages returns messages for the user after the trace has been read: a foreign
// format, the notes and, if skipped is set, the skipped rows.
func (r *Reader) Messages(skipped bool) (texts []string) {
	if r.format != Mooncake {
		texts = append(texts, "trace format: "+string(r.format))
	}
	for _, note := range r.Notes() {
		texts = append(texts, note.String())
	}
	if r.skipped == 0 || !skipped {
		return texts
	}
	rows := "rows"
	if r.skipped == 1 {
		rows = "row"
	}
	text := fmt.Sprintf("%d invalid %s skipped", r.skipped, rows)
	for _, reason := range r.reasons {
		text += fmt.Sprintf("\n  %v", reason)
	}
	if n := r.skipped - len(r.reasons); n > 0 {
		text += fmt.Sprintf("\n  and %d more", n)
	}
	return append(texts, text)
}

// Close closes the files. Reading to the end does not.
func (r *Reader) Close() error { return r.source.Close() }

// Read reads the next row into req, or returns io.EOF. It reuses the array of
// req.HashIDs: copy a row to keep it, or use [Reader.Requests].
func (r *Reader) Read(req *trace.Request) error {
	for {
		err := r.source.Read(req)
		if err == nil {
			if r.ids != nil && req.HashIDs == nil {
				if r.assigned == 0 {
					r.ids.blockSize = cmp.Or(r.opts.BlockSize, r.BlockSize(), trace.DefaultBlockSize)
				}
				r.ids.assign(req)
				r.assigned++
			}
			return nil
		}
		if err == io.EOF {
			return err
		}
		if !r.opts.SkipBadRows || !skippable(err) {
			return err
		}
		if r.skipped++; len(r.reasons) < maxReasons {
			r.reasons = append(r.reasons, err)
		}
	}
}

// Requests returns the remaining rows. It can be ranged over once.
func (r *Reader) Requests() trace.Requests { return trace.FromRows(r) }

// Borrowed returns the remaining rows without copying them: see [trace.Borrow].
func (r *Reader) Borrowed() trace.Requests { return trace.Borrow(r) }
