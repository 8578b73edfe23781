package runfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"moontide/replay"
	"moontide/trace/atomicfile"
)

// Writer writes a run's folder. It is a replay.Recorder and a replay.Journal.
type Writer struct {
	Dir      string
	KeepText bool
	// NoChunkTimes omits the gaps between token chunks from the records, which
	// makes them short, and counts the gaps in [GapsFile].
	NoChunkTimes bool

	gaps          gapCounts
	line          []byte
	file          *os.File
	samples, sent *os.File // nil before OpenFiles
}

// CheckFolder returns an error if dir exists and is not empty. Files left by a run
// that was killed before it wrote run.json are ignored.
func CheckFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && !slices.ContainsFunc(entries, isContent):
		return nil
	case err == nil:
		return fmt.Errorf("run folder %s exists and is not empty: choose a new folder, or resume the run in it", dir)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("making run folder: %w", err)
}

// isContent reports whether a file is anything other than the files [Create] makes
// first.
func isContent(e fs.DirEntry) bool {
	info, err := e.Info()
	begun := e.Name() == RequestsFile && err == nil && info.Mode().IsRegular() && info.Size() == 0
	return !begun && !strings.HasPrefix(e.Name(), RunFile+atomicfile.PartSuffix)
}

// TryFolder checks that a folder can be created at dir, by creating and removing
// it. See [CheckFolder].
func TryFolder(dir string) error {
	if err := CheckFolder(dir); err != nil {
		return err
	}
	if err := atomicfile.TryFolder(dir); err != nil {
		return fmt.Errorf("making run folder: %w", err)
	}
	return nil
}

// Create creates a run's folder with run.json. See [CheckFolder].
func Create(dir string, run Run) (*Writer, error) {
	if err := CheckFolder(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making run folder: %w", err)
	}
	f, err := openWriter(dir, os.O_CREATE|os.O_WRONLY, func(f *Writer) error {
		if err := CheckFolder(dir); err != nil { // again, now that the folder is locked
			return err
		}
		return f.WriteRun(run)
	})
	if err != nil {
		return nil, fmt.Errorf("making run folder: %w", err)
	}
	return f, nil
}

// openWriter opens the file of records, whose lock protects the folder, and then
// prepares the folder.
func openWriter(dir string, flags int, prepare func(*Writer) error) (*Writer, error) {
	file, err := atomicfile.Open(filepath.Join(dir, RequestsFile), flags, 0o644)
	if err != nil {
		return nil, err
	}
	f := &Writer{Dir: dir, file: file}
	if !atomicfile.Lock(file) {
		err = errors.New("the run is still going")
	} else {
		err = prepare(f)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return f, nil
}

// Record writes one line. The line has reached the operating system when Record
// returns.
func (f *Writer) Record(rec replay.Record) error {
	if f.NoChunkTimes {
		f.countGaps(&rec)
	}
	line, err := AppendRecord(f.line[:0], rec, f.KeepText)
	if err == nil {
		f.line = append(line, '\n')
		_, err = f.file.Write(f.line)
	}
	if err != nil {
		return fmt.Errorf("recording row %d: %w", rec.Row+1, err)
	}
	return nil
}

// countGaps moves the gaps of a record to the counts. Gaps of failed requests are
// dropped, because latencies exclude them.
func (f *Writer) countGaps(rec *replay.Record) {
	if f.gaps == nil {
		f.gaps = gapCounts{}
	}
	if rec.Class == replay.OK {
		for _, gap := range rec.Gaps {
			f.gaps.add(gap)
		}
	}
	rec.Gaps = nil
}

// OpenFiles opens the files of samples and of the journal, before the requests in flight
// may have used up the file descriptors. Written lines survive a kill.
func (f *Writer) OpenFiles() (err error) {
	if f.samples, err = appendLines(filepath.Join(f.Dir, SamplesFile)); err == nil {
		f.sent, err = appendLines(filepath.Join(f.Dir, SentFile))
	}
	if err != nil {
		return fmt.Errorf("making run folder: %w", err)
	}
	return nil
}

// Close closes the files.
func (f *Writer) Close() error {
	var gapsErr error
	if f.NoChunkTimes {
		gapsErr = f.gaps.write(f.Dir)
	}
	err := f.file.Sync()
	for _, file := range []*os.File{f.file, f.samples, f.sent} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	if err != nil {
		err = fmt.Errorf("closing %s: %w", RequestsFile, err)
	}
	return errors.Join(gapsErr, err)
}

// WriteRun replaces run.json.
func (f *Writer) WriteRun(run Run) error {
	if err := writeJSON(filepath.Join(f.Dir, RunFile), run, atomicfile.Replace); err != nil || !run.Finished() {
		return err
	}
	return removeJournal(f.Dir)
}

// WriteJSON replaces a file with v as indented JSON, atomically, unless it is not
// moontide's. It uses encoding/json because compiling sonic's encoder for one object costs
// more than it saves.
func WriteJSON(path string, v any) error { return writeJSON(path, v, atomicfile.Create) }

func writeJSON(path string, v any, open func(path string) (*atomicfile.File, error)) error {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if err := out.Encode(v); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	f, err := open(path)
	return writeFile(f, err, text.Bytes())
}

// writeFile writes a file that replaces another one, or returns err if it could not be
// opened.
func writeFile(f *atomicfile.File, err error, text []byte) error {
	if err != nil {
		return fmt.Errorf("writing %w", err)
	}
	defer f.Discard()
	if _, err = f.Write(text); err == nil {
		err = f.Close()
	}
	if err != nil {
		return fmt.Errorf("writing %w", err)
	}
	return nil
}
