package capture

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"moontide/trace"
	"moontide/trace/format"
)

// Files writes a trace to a file, or to several in turn. Rows are written in the order
// in which their requests end, and at most a second late, so that a process that is
// killed leaves a trace. A file that is complete is sorted by arrival. After a failure,
// such as a full disk, rows go to a new file as soon as one can be written.
type Files struct {
	cfg  FilesConfig
	done chan struct{}
	wg   sync.WaitGroup // sorting and flushing

	mu      sync.Mutex // of all below
	now     *file      // nil after a failure
	paths   []string
	retryAt time.Time
	sortErr error
}

// FilesConfig says where rows go.
type FilesConfig struct {
	// Path is that of the first file. Later ones have a number before the extension.
	// Names that end in .gz and .zst are compressed.
	Path string
	// A new file begins after a time or a number of bytes before compression; 0 is no
	// limit.
	Every time.Duration
	Size  int64
}

// file is a file that is written.
type file struct {
	path   string
	out    *os.File
	rows   *format.Writer
	begun  time.Time
	size   int64
	latest float64 // arrival, in ms
	sorted bool
}

const retryAfter = time.Second

// CreateFiles creates the first file, which must not exist.
func CreateFiles(cfg FilesConfig) (*Files, error) {
	f := &Files{cfg: cfg, done: make(chan struct{})}
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("creating trace: %w", err)
	}
	f.wg.Go(f.flushAll)
	return f, nil
}

// Paths returns the paths of all files, in the order in which they were begun.
func (f *Files) Paths() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.paths...)
}

// Write writes a row.
func (f *Files) Write(r trace.Request) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now == nil {
		if time.Now().Before(f.retryAt) {
			return errors.New("writing trace: the last attempt failed")
		}
		if err := f.open(); err != nil {
			f.retryAt = time.Now().Add(retryAfter)
			return fmt.Errorf("creating trace: %w", err)
		}
	}
	if f.full() {
		f.close()
		if err := f.open(); err != nil {
			f.retryAt = time.Now().Add(retryAfter)
			return fmt.Errorf("creating trace: %w", err)
		}
	}
	now := f.now
	if err := now.rows.Write(r); err != nil {
		f.fail()
		return err
	}
	now.size += int64(100 + 18*len(r.HashIDs) + len(r.Extra))
	now.sorted = now.sorted && r.Timestamp.Value >= now.latest
	now.latest = max(now.latest, r.Timestamp.Value)
	return nil
}

// full reports whether a new file has to begin.
func (f *Files) full() bool {
	return f.cfg.Every > 0 && time.Since(f.now.begun) >= f.cfg.Every || f.cfg.Size > 0 && f.now.size >= f.cfg.Size
}

// Close completes the last file, waits until all files are sorted, and returns the first
// error. A file that cannot be sorted stays as it is.
func (f *Files) Close() error {
	close(f.done)
	f.mu.Lock()
	err := f.close()
	f.mu.Unlock()
	f.wg.Wait()
	return errors.Join(err, f.sortErr)
}

// open begins the next file.
func (f *Files) open() error {
	for n := len(f.paths) + 1; ; n++ {
		path := numbered(f.cfg.Path, n)
		out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, os.ErrExist) && len(f.paths) > 0 {
			continue
		}
		if err != nil {
			return err
		}
		rows, err := format.NewWriter(out, path)
		if err != nil {
			return errors.Join(err, out.Close())
		}
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
	stem, rest, _ := strings.Cut(name, ".")
	if rest != "" {
		rest = "." + rest
	}
	return fmt.Sprintf("%s%s-%04d%s", folder, stem, n, rest)
}

// close completes the file, and sorts it in the background.
func (f *Files) close() error {
	now := f.now
	f.now = nil
	if now == nil {
		return nil
	}
	if err := errors.Join(now.rows.Close(), now.out.Sync(), now.out.Close()); err != nil {
		return err
	}
	if now.sorted {
		return nil
	}
	f.wg.Go(func() {
		if err := sortFile(now.path); err != nil {
			f.mu.Lock()
			f.sortErr = errors.Join(f.sortErr, fmt.Errorf("sorting %s, which is in the order in which requests ended: %w", now.path, err))
			f.mu.Unlock()
		}
	})
	return nil
}

// fail leaves a file that cannot be written.
func (f *Files) fail() {
	f.now.out.Close()
	f.now, f.retryAt = nil, time.Now().Add(retryAfter)
}

// flushAll flushes the file once a second.
func (f *Files) flushAll() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-f.done:
			return
		case <-tick.C:
		}
		f.mu.Lock()
		if f.now != nil {
			if err := f.now.rows.Flush(); err != nil {
				f.fail()
			}
		}
		f.mu.Unlock()
	}
}

// sortFile sorts a trace by arrival.
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
	if _, err := out.WriteAll(trace.Sort(in.Requests(), format.Codec())); err != nil {
		return err
	}
	return out.Close()
}
