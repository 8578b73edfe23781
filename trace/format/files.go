package format

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"moontide/trace"
	"moontide/trace/spill"
)

// textFiles reads parts of files, see indexed. One file is open at a time.
type textFiles struct {
	files    []*textFile
	notes    *notes
	recorded bool   // Options.RecordedTimes
	size     int    // tokens of a block, 0 if unknown
	sizeAt   string // where the size was found
	spool    spool
	file     *os.File  // open for readAt
	of       *textFile // that file
	raw      []byte    // the request that was read last

	name string // file and line of the request that was read last
	line int
}

// textFile is a file of a trace.
type textFile struct {
	name    string
	path    string   // "" if it cannot be opened again
	text    *Text    // during the first reading, or if it was open before
	file    *os.File // of text, nil if the caller closes it
	spooled bool     // its requests are in the spool
	base    int64    // where the text starts in the file or the spool
}

// open opens the text for the first reading, unless it is open.
func (f *textFile) open() (err error) {
	if f.file == nil && f.text == nil {
		f.file, err = OpenFile(f.path)
	}
	if f.text == nil && err == nil {
		f.text, err = NewText(f.file, f.name)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	f.spooled = f.path == "" || f.text.Compressed()
	f.base = f.text.start
	return nil
}

// Close closes the text.
func (f *textFile) Close() error {
	var errs []error
	if f.text != nil {
		errs = append(errs, f.text.Close())
	}
	if f.file != nil {
		errs = append(errs, f.file.Close())
	}
	f.file, f.text = nil, nil
	return errors.Join(errs...)
}

// spooling returns a reader of all of f that copies it to the spool if f cannot
// be read again.
func (t *textFiles) spooling(f *textFile) io.Reader {
	if !f.spooled {
		return f.text
	}
	f.base = t.spool.size
	return io.TeeReader(f.text, &t.spool)
}

// readAt reads a request of f. The result is valid until the next call.
func (t *textFiles) readAt(f *textFile, offset int64, length int32) ([]byte, error) {
	var file io.ReaderAt = t.spool.file
	if !f.spooled {
		if t.of != f {
			if err := t.closeFile(); err != nil {
				return nil, err
			}
			var err error
			if t.file, err = os.Open(f.path); err != nil {
				return nil, err
			}
			t.of = f
		}
		file = t.file
	}
	t.raw = slices.Grow(t.raw[:0], int(length))[:length]
	_, err := file.ReadAt(t.raw, offset)
	return t.raw, err
}

func (t *textFiles) closeFile() (err error) {
	if t.file != nil {
		err = t.file.Close()
	}
	t.file, t.of = nil, nil
	return err
}

// lines calls keep for the remaining lines of f.
func (t *textFiles) lines(f *textFile, keep func(line []byte) error) error {
	t.name = f.name
	for {
		line, err := f.text.Line()
		t.line = f.text.Number()
		switch {
		case err == io.EOF:
			return nil
		case err != nil || len(line) == 0:
		default:
			err = keep(line)
		}
		if err != nil {
			return &trace.RowError{File: f.name, Line: t.line, Err: err}
		}
	}
}

// offset returns the offset at which the current line of f can be read again, and copies
// it to the spool if need be.
func (t *textFiles) offset(f *textFile, line []byte) (int64, error) {
	if !f.spooled {
		return f.base + f.text.At(), nil
	}
	offset := t.spool.size
	if _, err := t.spool.Write(line); err != nil {
		return 0, trace.ReadError{Err: err}
	}
	return offset, nil
}

// setBlockSize keeps the tokens of a block that a file declares, 0 for none. line
// is 0 if unknown.
func (t *textFiles) setBlockSize(size int, file string, line int) error {
	switch {
	case size == 0:
	case t.size == 0:
		t.size, t.sizeAt = size, file
		if line > 0 {
			t.sizeAt = fmt.Sprintf("%s:%d", file, line)
		}
	case t.size != size:
		return fmt.Errorf("is not %d as in %s: %d", t.size, t.sizeAt, size)
	}
	return nil
}

func (t *textFiles) Line() int { return t.line }

func (t *textFiles) File() string { return t.name }

// Close closes the open file and removes the spool.
func (t *textFiles) Close() error {
	var errs []error
	for _, f := range t.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(append(errs, t.closeFile(), t.spool.file.Close())...)
}

// spool is a temporary file with texts that come from a pipe or are compressed.
type spool struct {
	file *spill.File
	size int64
}

// Write implements io.Writer.
func (s *spool) Write(b []byte) (n int, err error) {
	if s.file == nil {
		if s.file, err = spill.NewFile(); err != nil {
			return 0, fmt.Errorf("creating a temporary copy: %w", err)
		}
	}
	n, err = s.file.Write(b)
	s.size += int64(n)
	return n, err
}

// Files returns the paths of the files of a folder that make up one trace, sorted
// by name: those whose names end in .json or .jsonl, compressed or not. It follows
// links, and ignores subfolders and names that begin with a dot. rest is the
// number of other files.
func Files(folder string) (paths []string, rest int, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, 0, fmt.Errorf("opening trace: %w", err)
	}
	for _, entry := range entries {
		name, path := entry.Name(), filepath.Join(folder, entry.Name())
		plain := strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
		info, err := os.Stat(path)
		if ending := filepath.Ext(plain); strings.HasPrefix(name, ".") || ending != ".json" && ending != ".jsonl" || err == nil && !info.Mode().IsRegular() {
			rest++
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("opening trace: %w", err)
		}
		paths = append(paths, path)
	}
	if len(paths) == 0 {
		return nil, rest, fmt.Errorf("opening trace: %s is a folder without files that end in .json or .jsonl", folder)
	}
	return paths, rest, nil
}

// OpenFile opens a trace file for callers that inspect it before [NewReader].
func OpenFile(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening trace: %w", err)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, fmt.Errorf("opening trace: %s is a folder", path)
	}
	return f, nil
}
