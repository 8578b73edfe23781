// Package atomicfile writes files atomically: a file appears complete or not at all.
//
//	f, err := atomicfile.Create(path)
//	if err != nil { ... }
//	defer f.Discard() // does nothing after Close
//	if _, err := f.Write(data); err != nil { ... }
//	return f.Close()
//
// The data goes to a temporary file in the same folder, which Close renames. A
// symbolic link is kept: the file that it points to is replaced. The new file
// has the permissions of the old one. A pipe or device is written in place.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a file that replaces the one at its path when Close succeeds. Errors
// name that path, not the temporary file. It is not safe for concurrent use.
type File struct {
	path   string
	target string // where Close moves the file; "" if it is written in place
	file   *os.File
}

// Create starts writing the file at path. Until Close, the path is unchanged.
func Create(path string) (*File, error) {
	f := &File{path: path}
	mode := fs.FileMode(0o644)
	info, err := os.Stat(path)
	switch {
	case err != nil: // reported when it is created
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder", path)
	case !info.Mode().IsRegular():
		if f.file, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
			return nil, f.named(err)
		}
		return f, nil
	default:
		mode = info.Mode().Perm()
	}
	if f.target, err = resolveLink(path); err == nil {
		f.file, err = createBeside(f.target, mode)
	}
	if err != nil {
		return nil, f.named(err)
	}
	if info != nil { // the umask may have removed some
		if err := f.file.Chmod(mode); err != nil {
			f.Discard()
			return nil, f.named(err)
		}
	}
	return f, nil
}

// resolveLink returns the file that a path leads to, which need not exist.
func resolveLink(path string) (string, error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target, nil
	}
	to, err := os.Readlink(path)
	if err != nil {
		return path, nil // not a link
	}
	if !filepath.IsAbs(to) {
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", err
		}
		to = filepath.Join(folder, to)
	}
	if info, err := os.Lstat(to); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return "", errors.New("symbolic link points to a dangling symbolic link")
	}
	return to, nil
}

// PartSuffix and a number end the name of the temporary file of a [File], which
// remains if the process is killed.
const PartSuffix = ".part"

// createBeside creates a temporary file in the same folder as target, so that it
// can be renamed.
func createBeside(target string, mode fs.FileMode) (*os.File, error) {
	for i := 0; ; i++ {
		f, err := os.OpenFile(fmt.Sprintf("%s%s%d", target, PartSuffix, os.Getpid()+i), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) || i == 100 {
			return f, err
		}
	}
}

// named prefixes an error with the file's path.
func (f *File) named(err error) error {
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
	return fmt.Errorf("%s: %w", f.path, err)
}

// Write implements io.Writer.
func (f *File) Write(b []byte) (int, error) {
	n, err := f.file.Write(b)
	return n, f.named(err)
}

// Close renames the file to its path. If it fails, the old file stays.
func (f *File) Close() error {
	err := f.file.Close()
	if f.target != "" {
		if err == nil {
			err = os.Rename(f.file.Name(), f.target)
		}
		if err != nil {
			os.Remove(f.file.Name())
		}
		f.target = "" // nothing to discard
	}
	return f.named(err)
}

// Discard removes the temporary file; the old file stays. After Close it does
// nothing.
func (f *File) Discard() {
	f.file.Close()
	if f.target != "" {
		os.Remove(f.file.Name())
	}
}
