package format

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// textFile is a file of a trace.
type textFile struct {
	name string // in errors
	path string
	text *Text    // nil while it is not open
	file *os.File // of text, nil if the caller closes it
}

// open opens the file, unless it is open.
func (f *textFile) open() (err error) {
	if f.text != nil {
		return nil
	}
	if f.file, err = OpenFile(f.path); err != nil {
		return err
	}
	if f.text, err = NewText(f.file, f.name); err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

// Close closes the file, if it is open.
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
		ending := filepath.Ext(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst"))
		switch info, err := os.Stat(path); {
		case strings.HasPrefix(name, "."), ending != ".json" && ending != ".jsonl", err == nil && !info.Mode().IsRegular():
			rest++
		case err != nil:
			return nil, 0, fmt.Errorf("opening trace: %w", err)
		default:
			paths = append(paths, path)
		}
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
