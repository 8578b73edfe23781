package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WholeFile is a file that appears under its name, whole, when Close succeeds,
// and replaces what was there; until then nothing is touched. A link goes on
// pointing where it did: what it points to is replaced. The new file has the
// permissions of the old one. A pipe or a device is written to in place, never
// replaced.
//
// Errors name the path that was asked for, not the temporary file beside it. A
// WholeFile is not safe for concurrent use.
type WholeFile struct {
	path   string
	target string // where Close moves file to; "" where it is written in place
	file   *os.File
}

// CreateWhole begins a file.
func CreateWhole(path string) (*WholeFile, error) {
	w := &WholeFile{path: path}
	mode := fs.FileMode(0o644)
	info, err := os.Stat(path)
	switch {
	case err != nil: // what is wrong with it shows when it is created
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder", path)
	case !info.Mode().IsRegular():
		if w.file, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
			return nil, w.named(err)
		}
		return w, nil
	default:
		mode = info.Mode().Perm()
	}
	if w.target, err = linked(path); err == nil {
		w.file, err = createBeside(w.target, mode)
	}
	if err != nil {
		return nil, w.named(err)
	}
	if info != nil { // the process's mask may have taken some of it away
		if err := w.file.Chmod(mode); err != nil {
			w.Discard()
			return nil, w.named(err)
		}
	}
	return w, nil
}

// linked is where a path leads to, be there a file or not.
func linked(path string) (string, error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target, nil
	}
	to, err := os.Readlink(path)
	if err != nil {
		return path, nil // no link
	}
	if !filepath.IsAbs(to) {
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", err
		}
		to = filepath.Join(folder, to)
	}
	if info, err := os.Lstat(to); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return "", errors.New("it is a link to a link to nothing")
	}
	return to, nil
}

// PartSuffix is what the name of a [WholeFile] goes on with, and then a number,
// until it is closed. A kill leaves the file under that name.
const PartSuffix = ".part"

// createBeside opens a new file in the folder of another, so that it can be
// moved to its place.
func createBeside(target string, mode fs.FileMode) (*os.File, error) {
	for i := 0; ; i++ {
		f, err := os.OpenFile(fmt.Sprintf("%s%s%d", target, PartSuffix, os.Getpid()+i), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) || i == 100 {
			return f, err
		}
	}
}

// named puts the file's own path before what went wrong.
func (w *WholeFile) named(err error) error {
	if err == nil {
		return nil
	}
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		err = path.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return fmt.Errorf("%s: %w", w.path, err)
}

func (w *WholeFile) Write(b []byte) (int, error) {
	n, err := w.file.Write(b)
	return n, w.named(err)
}

// Close puts the file in its place. Where it fails, what was there stays.
func (w *WholeFile) Close() error {
	err := w.file.Close()
	if w.target != "" {
		if err == nil {
			err = os.Rename(w.file.Name(), w.target)
		}
		if err != nil {
			os.Remove(w.file.Name())
		}
	}
	return w.named(err)
}

// Discard gives up the file: what was there stays.
func (w *WholeFile) Discard() {
	w.file.Close()
	if w.target != "" {
		os.Remove(w.file.Name())
	}
}
