package format

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mostFiles bounds the number of files in a folder.
const mostFiles = 100_000

// Files returns the paths of the files of a folder that make up one trace, sorted
// by name: those whose names end in .json or .jsonl, compressed or not. It follows
// links, and ignores subfolders and names that begin with a dot. rest is the
// number of other files.
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
