package format

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"

	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/log"
)

// maxReasons bounds the errors that Reader.Skipped returns.
const maxReasons = 10

// Options configures a Reader. The zero value detects the format and stops at the
// first bad row.
type Options struct {
	// Format is the format of the trace; "" detects it.
	Format Format
	// Name stands for the path of a file in errors, such as that of a copy; "" is the path.
	Name string
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
	// the trace or format, or else [block.DefaultSize].
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
	// Line and File are those of the row that Read returned last.
	Line() int
	File() string
	BlockSize() int // 0 if the trace declares none
	Close() error
}

// Open opens a trace: a file, or a folder of weka or dynamo files or request logs.
func Open(path string, opts Options) (*Reader, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return openFiles([]*textFile{{name: cmp.Or(opts.Name, path), path: path}}, "", opts)
	}
	paths, rest, err := Files(path)
	if err != nil {
		return nil, err
	}
	files := make([]*textFile, len(paths))
	for i, p := range paths {
		files[i] = &textFile{name: p, path: p}
	}
	r, err := openFiles(files, path, opts)
	if err == nil && rest > 0 {
		r.notes.countMany("other files and folders in the folder, not read", rest)
	}
	return r, err
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
		opts.Format = Detect(first.text.Head())
	}
	if _, err := ParseFormat(string(opts.Format)); err != nil {
		return nil, err
	}
	if opts.Part < 0 || opts.Part > maxPart {
		return nil, fmt.Errorf("part %d is out of range: 0 to %d", opts.Part, maxPart)
	}
	r = &Reader{format: opts.Format, opts: opts, folder: folder != "", notes: &notes{counts: map[string]int{}}}
	if opts.UniqueIDs {
		r.ids = &idGenerator{next: firstID + uint64(opts.Part)*partIDs}
	}
	if r.folder && !slices.Contains([]Format{Weka, Dynamo, OpenAILog}, r.format) {
		return nil, fmt.Errorf("opening trace: %s is a folder, but only weka and dynamo traces and request logs can be folders: its first file, %s, is %s", folder, first.name, named(r.format))
	}
	r.source, err = r.newSource(textFiles{format: r.format, files: files, name: first.name, notes: r.notes, recorded: opts.RecordedTimes}, explicit)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// newSource returns the source of the rows of the files. explicit: the caller named the
// format.
func (r *Reader) newSource(t textFiles, explicit bool) (source, error) {
	rows := &lines{textFiles: t, next: t.files[0].text.Line}
	counter := tokenCounter(r.opts.Tokens)
	switch r.format {
	case Weka:
		return newWeka(t), nil
	case Dynamo:
		return newDynamo(t), nil
	case TraceLab:
		return newTraceLab(t), nil
	case OpenAILog:
		return newRequestLog(t, r.opts.Record)
	case ShareGPT:
		return newShareGPT(t, counter), nil
	case Mooncake:
		rows.parse = nativeRows(explicit)
	case Bailian:
		rows.size = bailianBlock
		rows.parse = newBailian(t.notes).parse
	case AIPerf:
		rows.parse = (&aiperfRows{notes: t.notes, counter: counter}).parse
	default:
		table, err := newCSV(r.format, t.files[0].text, t.name, t.notes)
		if err != nil {
			return nil, err
		}
		rows.parse = table.parse
	}
	return rows, nil
}

// Format returns the format of the trace.
func (r *Reader) Format() Format { return r.format }

// HashedIDs reports whether the block ids of the format are hashes, most of them
// above 2^53: see merge.Renumber.
func (r *Reader) HashedIDs() bool {
	return slices.Contains([]Format{Weka, Dynamo, Bailian, TraceLab}, r.format)
}

// BlockSize returns the tokens of a block that the format or trace declares, or
// 0. It reads all of a weka or dynamo trace to find it.
func (r *Reader) BlockSize() int {
	size := r.source.BlockSize()
	if size == 0 && r.assigned > 0 {
		return r.ids.blockSize
	}
	return size
}

// Line returns the line, in its file, of the row that Read returned last, from 1.
func (r *Reader) Line() int { return r.source.Line() }

// File returns the file of that row if the trace is a folder, or "".
func (r *Reader) File() string {
	if !r.folder {
		return ""
	}
	return r.source.File()
}

// Skipped returns the number of bad rows that were skipped and the first ten
// errors.
func (r *Reader) Skipped() (rows int, reasons []error) { return r.skipped, r.reasons }

// Notes describes the data dropped or assumed in the rows read so far.
func (r *Reader) Notes() (texts []string) {
	for _, text := range r.notes.texts {
		if count := r.notes.counts[text]; count > 0 {
			text = fmt.Sprintf("%s: %d", text, count)
		}
		texts = append(texts, text)
	}
	if r.assigned > 0 {
		texts = append(texts, fmt.Sprintf("rows without block ids, which got generated ones (unique, %d tokens a block): %d", r.ids.blockSize, r.assigned))
	}
	return texts
}

// Messages returns messages for the user after the trace has been read: a foreign
// format, the notes and, if skipped is set, the skipped rows.
func (r *Reader) Messages(skipped bool) (texts []string) {
	if r.format != Mooncake {
		texts = append(texts, "trace format: "+string(r.format))
	}
	texts = append(texts, r.Notes()...)
	if r.skipped == 0 || !skipped {
		return texts
	}
	text := fmt.Sprintf("%d invalid rows skipped", r.skipped)
	if r.skipped == 1 {
		text = "1 invalid row skipped"
	}
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
	err := r.source.Read(req)
	for err != nil && r.opts.SkipBadRows && skippable(err) {
		if r.skipped++; len(r.reasons) < maxReasons {
			r.reasons = append(r.reasons, err)
		}
		err = r.source.Read(req)
	}
	if err == nil && r.ids != nil && req.HashIDs == nil {
		if r.assigned == 0 {
			r.ids.blockSize = cmp.Or(r.opts.BlockSize, r.BlockSize(), block.DefaultSize)
		}
		r.ids.assign(req)
		r.assigned++
	}
	return err
}

// Requests returns the remaining rows. It can be ranged over once.
func (r *Reader) Requests() trace.Requests { return trace.FromRows(r) }

// Borrowed returns the remaining rows without copying them: see [trace.Borrow].
func (r *Reader) Borrowed() trace.Requests { return trace.Borrow(r) }

// maxNotes bounds the distinct notes of one trace. Further ones are counted together.
const (
	maxNotes   = 50
	otherNotes = "other things like these"
)

// notes describe data that a reader dropped or assumed.
type notes struct {
	texts  []string       // in the order in which they first occurred
	counts map[string]int // how often; 0 if a note is about the trace as a whole
}

func (n *notes) count(text string) { n.countMany(text, 1) }

func (n *notes) countMany(text string, more int) {
	if _, known := n.counts[text]; !known && len(n.texts) >= maxNotes {
		text = otherNotes
	}
	if !slices.Contains(n.texts, text) {
		n.texts = append(n.texts, text)
	}
	n.counts[text] += more
}

// say adds a note about the trace as a whole.
func (n *notes) say(format string, values ...any) {
	n.countMany(fmt.Sprintf(format, values...), 0)
}
