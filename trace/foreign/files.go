package foreign

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"moontide/trace"
)

// mostFiles bounds the files of a folder.
const mostFiles = 100_000

// Files returns the paths of the files of a folder that make up one trace, in
// order of their names: those whose names end in .json or .jsonl, compressed or not.
// Links are followed, folders in it and names that begin with a dot are not. The
// rest is how many others there are.
func Files(folder string) (paths []string, rest int, err error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, 0, fmt.Errorf("opening trace: %w", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(mostFiles + 1)
	if err != nil && err != io.EOF {
		return nil, 0, fmt.Errorf("opening trace: %w", err)
	}
	if len(names) > mostFiles {
		return nil, 0, fmt.Errorf("opening trace: %s has more than %d files", folder, mostFiles)
	}
	slices.Sort(names)
	for _, name := range names {
		plain := strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
		path := filepath.Join(folder, name)
		if ending := filepath.Ext(plain); strings.HasPrefix(name, ".") || ending != ".json" && ending != ".jsonl" {
			rest++
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, 0, fmt.Errorf("opening trace: %w", err)
		}
		if !info.Mode().IsRegular() {
			rest++
			continue
		}
		paths = append(paths, path)
	}
	if len(paths) == 0 {
		return nil, rest, fmt.Errorf("opening trace: %s is a folder without files that end in .json or .jsonl", folder)
	}
	return paths, rest, nil
}

// files are the texts that make up one trace, one after the other.
type files struct {
	first *trace.Text // that is open already, nil: none
	name  string
	paths []string // that follow
	text  *trace.Text
	file  io.Closer
}

// Next closes a text and opens the next, or returns io.EOF.
func (f *files) Next() (*trace.Text, string, error) {
	if f.first != nil {
		f.text, f.first = f.first, nil
		return f.text, f.name, nil
	}
	if err := f.Close(); err != nil {
		return nil, "", err
	}
	if len(f.paths) == 0 {
		return nil, "", io.EOF
	}
	path := f.paths[0]
	f.paths = f.paths[1:]
	in, err := trace.OpenFile(path)
	if err != nil {
		return nil, "", err
	}
	f.file = in
	if f.text, err = trace.NewText(in, path); err != nil {
		return nil, "", errors.Join(err, f.Close())
	}
	return f.text, path, nil
}

// Close closes what is open.
func (f *files) Close() error {
	var errs []error
	for _, text := range []*trace.Text{f.first, f.text} {
		if text != nil {
			errs = append(errs, text.Close())
		}
	}
	if f.file != nil {
		errs = append(errs, f.file.Close())
	}
	f.first, f.text, f.file = nil, nil, nil
	return errors.Join(errs...)
}
