package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"moontide/trace"
	"moontide/trace/atomicfile"
	"moontide/trace/format"
)

// Files writes a trace to one file or to several in turn, in the order in which requests
// end. A killed process leaves the rows that were flushed. A complete file is sorted by
// arrival. After a failure, such as a full disk, rows go to a new file as soon as one can
// be written.
type Files struct {
	cfg     FilesConfig
	sorting sync.WaitGroup

	mu      sync.Mutex // guards all below
	now     *file      // nil after a failure
	paths   []string
	begun   int // number of files, including those without rows
	retryAt time.Time
	toSort  []string // files to sort at the end, when the disk may have room
	sortErr error
}

// FilesConfig configures [Files].
type FilesConfig struct {
	// Path is the first file. Later ones have a number before the extension. Files whose
	// names end in .gz and .zst are compressed.
	Path string
	// Every and Size limit a file: the first flush beyond them begins a new one. 0 is no
	// limit.
	Every time.Duration
	Size  int64

	create func(path string) (output, error) // nil is createNew
}

type output interface {
	io.WriteSeeker
	atomicfile.Named
	Truncate(size int64) error
}

func createNew(path string) (output, error) { return atomicfile.New(path, 0o644) }

type file struct {
	path    string
	out     output
	rows    *format.Writer
	begun   time.Time
	flushed int64   // its length after the last flush
	latest  float64 // arrival, in ms
	sorted  bool
}

const retryAfter = time.Second

// CreateFiles creates the first file, which must not exist.
func CreateFiles(cfg FilesConfig) (*Files, error) {
	if cfg.create == nil {
		cfg.create = createNew
	}
	f := &Files{cfg: cfg}
	return f, f.open()
}

// Paths returns the paths of all files, in the order in which they were begun.
func (f *Files) Paths() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.paths)
}

// Write writes a row, which may be kept in memory until Flush.
func (f *Files) Write(r trace.Request) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now == nil {
		if time.Now().Before(f.retryAt) {
			return errors.New("writing trace: the last attempt failed")
		}
		if err := f.open(); err != nil {
			f.retryAt = time.Now().Add(retryAfter)
			return err
		}
	}
	now := f.now
	if err := now.rows.Write(r); err != nil {
		return err
	}
	now.sorted = now.sorted && r.Timestamp.Value >= now.latest
	now.latest = max(now.latest, r.Timestamp.Value)
	return nil
}

// Flush makes all rows so far readable. After an error, those since the last flush are
// lost.
func (f *Files) Flush() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now
	if now == nil {
		return nil
	}
	err := now.rows.Flush()
	if err == nil {
		now.flushed, err = now.out.Seek(0, io.SeekCurrent)
	}
	if err != nil || f.cfg.Every > 0 && time.Since(now.begun) >= f.cfg.Every || f.cfg.Size > 0 && now.flushed >= f.cfg.Size {
		f.end(err != nil)
	}
	return err
}

// Close completes the last file, waits until all files are sorted, and returns the first
// error. A file that cannot be sorted stays as it is.
func (f *Files) Close() error {
	err := f.Flush()
	f.mu.Lock()
	if f.now != nil {
		f.end(false)
	}
	for _, path := range f.toSort {
		f.sorting.Go(func() { f.sort(path) })
	}
	f.mu.Unlock()
	f.sorting.Wait()
	return errors.Join(err, f.sortErr)
}

// open begins the next file.
func (f *Files) open() error {
	for {
		path := numbered(f.cfg.Path, f.begun+1)
		out, err := f.cfg.create(path)
		if errors.Is(err, os.ErrExist) && f.begun > 0 {
			f.begun++
			continue
		}
		if err != nil {
			return fmt.Errorf("creating trace: %w", err)
		}
		rows, err := format.NewWriter(out, path)
		if err != nil {
			return fmt.Errorf("creating trace: %w", errors.Join(err, out.Close()))
		}
		f.begun++
		f.now = &file{path: path, out: out, rows: rows, begun: time.Now(), sorted: true}
		f.paths = append(f.paths, path)
		return nil
	}
}

// numbered returns the path of the n-th file, from 1.
func numbered(path string, n int) string {
	if n == 1 {
		return path
	}
	folder, name := filepath.Split(path)
	stem, extension, found := strings.Cut(name, ".")
	if found {
		extension = "." + extension
	}
	return fmt.Sprintf("%s%s-%04d%s", folder, stem, n, extension)
}

// end closes the file and has it sorted. After a failure, it keeps the rows that were
// flushed; a file without rows is removed, because there is an attempt every second while
// the disk is full.
func (f *Files) end(failed bool) {
	now := f.now
	f.now = nil
	if failed {
		f.retryAt = time.Now().Add(retryAfter)
		now.out.Truncate(now.flushed)
	}
	switch {
	case failed && now.flushed == 0:
		atomicfile.Remove(now.out)
		f.paths = f.paths[:len(f.paths)-1]
		f.begun--
		return
	case failed && !now.sorted:
		f.toSort = append(f.toSort, now.path)
	case !now.sorted:
		defer f.sorting.Go(func() { f.sort(now.path) })
	}
	now.out.Close()
}

// sort sorts a file by arrival.
func (f *Files) sort(path string) {
	if err := sortFile(path); err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sortErr = errors.Join(f.sortErr, fmt.Errorf("sorting %s, which is in the order in which requests ended: %w", path, err))
	}
}

func sortFile(path string) error {
	in, err := format.Open(path, format.Options{Format: format.Mooncake})
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := format.Create(path)
	if err != nil {
		return err
	}
	defer out.Discard()
	if _, err := out.WriteAll(trace.Sort(in.Requests())); err != nil {
		return err
	}
	return out.Close()
}
