package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Temporary is a temporary file in the system's folder for such files. It is removed as
// soon as it is open, so that a killed process leaves none, or, where the system does not
// allow that, by Close.
type Temporary struct {
	*os.File
	removed bool
}

// NewTemporary opens a new temporary file for reading and writing.
func NewTemporary() (*Temporary, error) {
	f, err := os.CreateTemp("", folderPrefix+"*.tmp")
	if err != nil {
		return nil, err
	}
	return &Temporary{f, os.Remove(f.Name()) == nil}, nil
}

// Close closes and removes the file. It does nothing if t is nil.
func (t *Temporary) Close() error {
	if t == nil {
		return nil
	}
	err := t.File.Close()
	if !t.removed {
		err = errors.Join(err, os.Remove(t.Name()))
	}
	return err
}

// The file that marks a temporary folder, and its content. The process that uses the
// folder has locked it.
const (
	markFile     = "moontide.lock"
	mark         = "moontide removes this folder\n"
	folderPrefix = "moontide-"
)

// TemporaryFolder makes a folder in the system's folder for temporary files, and removes
// those of killed processes. remove removes it with all that it contains; after an error
// it does nothing.
func TemporaryFolder() (dir string, remove func(), err error) {
	removeAbandoned()
	if dir, err = os.MkdirTemp("", folderPrefix); err != nil {
		return "", func() {}, err
	}
	f, err := New(filepath.Join(dir, markFile), 0o600)
	if err == nil {
		Lock(f)
		_, err = io.WriteString(f, mark)
	}
	if err != nil {
		os.RemoveAll(dir)
		return "", func() {}, fmt.Errorf("making a temporary folder: %w", err)
	}
	return dir, func() { f.Close(); os.RemoveAll(dir) }, nil
}

// removeAbandoned removes the temporary folders of killed processes: those with the mark
// that no process has locked.
func removeAbandoned() {
	entries, _ := os.ReadDir(os.TempDir()) // one that cannot be read has none
	for _, e := range entries {
		dir := filepath.Join(os.TempDir(), e.Name())
		if !e.IsDir() || !strings.HasPrefix(e.Name(), folderPrefix) {
			continue
		}
		f, err := Open(filepath.Join(dir, markFile), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		text, _ := io.ReadAll(io.LimitReader(f, int64(len(mark)+1)))
		abandoned := string(text) == mark && Lock(f)
		f.Close()
		if abandoned {
			os.RemoveAll(dir)
		}
	}
}

// TryFolder checks that files can be created in a folder, which need not exist. It leaves
// nothing.
func TryFolder(dir string) error {
	var made []string // innermost first
	for outer := filepath.Clean(dir); ; outer = filepath.Dir(outer) {
		if _, err := os.Lstat(outer); err == nil || filepath.Dir(outer) == outer {
			break
		}
		made = append(made, outer)
	}
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(dir, "*"+PartSuffix); err == nil {
			err = Remove(f)
		}
	}
	for _, folder := range made {
		os.Remove(folder) // fails if it is already in use
	}
	return err
}
