// Package atomicfile makes all files that moontide makes: none is written half, none of
// the user's is lost.
//
//	f, err := atomicfile.Create(path)
//	if err != nil { ... }
//	defer f.Discard() // does nothing after Close
//	if _, err := f.Write(data); err != nil { ... }
//	return f.Close()
//
// [Create] replaces a file only if its content shows that moontide wrote it; [Replace]
// is for files in a folder that is moontide's; [New] never replaces one. The data of the
// first two goes to a temporary file in the same folder, which Close renames. If a
// process is killed, its temporary file stays until the next one writes the same file.
//
// No function follows a symbolic link in the last element of a path, or blocks on a
// pipe. A name of an open file, such as /dev/stdout or /dev/fd/3, stands for that file.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// File is a file that replaces the one at its path when Close succeeds. Errors
// name that path, not the temporary file. It is not safe for concurrent use.
type File struct {
	path  string
	moves bool // to path, when Close succeeds
	file  *os.File
	own   func(*os.File) bool
}

// Create starts writing the file at path. Until Close, the path is unchanged. A file
// that moontide did not write is an error, unless it is empty, and so is a read-only one.
// A pipe or a character device is written in place; a pipe needs a reader.
func Create(path string) (*File, error) { return create(path, isOwn) }

// Replace is Create for a file in a folder that only moontide writes to: whatever it
// contains, it is replaced.
func Replace(path string) (*File, error) { return create(path, isAny) }

// create starts writing a file that replaces one that is moontide's.
func create(path string, own func(*os.File) bool) (*File, error) {
	f := &File{path: path, own: own}
	var err error
	if f.file, err = openDescriptor(path); f.file == nil && err == nil {
		err = f.open(own)
	}
	if err != nil {
		return nil, f.named(err)
	}
	return f, nil
}

// open opens the file in place, or a temporary one.
func (f *File) open(own func(*os.File) bool) error {
	info, err := there(f.path, own)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if info != nil {
		if isStream(info) {
			f.file, err = openInPlace(f.path)
			return err
		}
		mode = info.Mode().Perm()
	}
	removeLeftovers(f.path, own)
	if f.file, err = createBeside(f.path, mode); err != nil {
		return err
	}
	f.moves = true
	Lock(f.file)
	if info != nil { // the umask may have removed some
		if err := f.file.Chmod(mode); err != nil {
			f.Discard()
			return err
		}
	}
	return nil
}

// Check returns the error of Create. It writes nothing to a pipe.
func Check(path string) error {
	if info, err := os.Lstat(path); err == nil && isStream(info) {
		return nil
	}
	f, err := Create(path)
	if err == nil {
		f.Discard()
	}
	return err
}

// there returns what is at a path, nil if nothing is, and an error if it may not be
// written.
func there(path string, own func(*os.File) bool) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.Mode().IsRegular():
		return info, checkOwn(path, own)
	case isStream(info):
		return info, nil
	}
	return nil, kindError(info.Mode())
}

// isStream reports whether a file is written in place.
func isStream(info fs.FileInfo) bool {
	return info.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) != 0
}

// kindError says why a path that has no regular file cannot be used.
func kindError(mode fs.FileMode) error {
	switch {
	case mode.IsDir():
		return errors.New("it is a folder")
	case mode&fs.ModeSymlink != 0:
		return errors.New("it is a symbolic link: name the file that it points to")
	}
	return errors.New("it is not a regular file")
}

// checkOwn returns an error for a file that is not moontide's, or that this user may not
// write.
func checkOwn(path string, own func(*os.File) bool) error {
	f, err := Open(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if !own(f) {
		return errors.New("it exists and moontide did not write it: choose another path, or delete it")
	}
	return nil
}

// openInPlace opens a pipe or device for writing.
func openInPlace(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|guarded, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !isStream(info) {
		f.Close()
		return nil, errors.Join(errors.New("it changed while it was opened"), err)
	}
	return f, nil
}

// New creates a file, which must not exist, for writing.
func New(path string, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
}

// Open opens a regular file, such as one of a run's folder or a key. flags are those of
// [os.OpenFile] without O_TRUNC. Anything else at the path is an error.
func Open(path string, flags int, mode fs.FileMode) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: kindError(info.Mode())}
	}
	f, err := os.OpenFile(path, flags|guarded, mode)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: kindError(info.Mode())}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Named is what [Remove] needs of an [os.File].
type Named interface {
	Name() string
	Stat() (fs.FileInfo, error)
	Close() error
}

// Remove closes a file and removes it, unless another one has taken its path.
func Remove(f Named) error {
	info, err := f.Stat()
	f.Close()
	if err != nil {
		return err
	}
	if there, err := os.Lstat(f.Name()); err != nil || !os.SameFile(info, there) {
		return err
	}
	return os.Remove(f.Name())
}

// PartSuffix and a number end the name of the temporary file of a [File].
const PartSuffix = ".moontide-part"

// createBeside creates a temporary file in the same folder as path, so that it can be
// renamed.
func createBeside(path string, mode fs.FileMode) (*os.File, error) {
	for i := 0; ; i++ {
		f, err := New(fmt.Sprintf("%s%s%d", path, PartSuffix, os.Getpid()+i), mode)
		if !errors.Is(err, fs.ErrExist) || i == 100 {
			return f, err
		}
	}
}

// removeLeftovers removes the temporary files of killed processes that wrote the same
// path: those that no process has locked, with content of moontide's or none.
func removeLeftovers(path string, own func(*os.File) bool) {
	entries, _ := os.ReadDir(filepath.Dir(path)) // one that cannot be read has none
	for _, e := range entries {
		number, is := strings.CutPrefix(e.Name(), filepath.Base(path)+PartSuffix)
		if _, err := strconv.Atoi(number); !is || err != nil {
			continue
		}
		f, err := Open(filepath.Join(filepath.Dir(path), e.Name()), os.O_RDWR, 0)
		switch {
		case err != nil:
		case Lock(f) && own(f):
			Remove(f)
		default:
			f.Close()
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

// Close renames the file to its path. If it fails, or another file has come to the path
// that moontide did not write, what is there stays.
func (f *File) Close() error {
	if !f.moves {
		return f.named(f.file.Close())
	}
	f.moves = false // nothing to discard
	mine, err := f.file.Stat()
	if closed := f.file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = f.move(mine)
	}
	if at, there := os.Lstat(f.file.Name()); err != nil && there == nil && os.SameFile(mine, at) {
		os.Remove(f.file.Name())
	}
	return f.named(err)
}

// move renames the temporary file, unless others have changed what is there.
func (f *File) move(mine fs.FileInfo) error {
	if info, err := there(f.path, f.own); err != nil {
		return err
	} else if info != nil && !info.Mode().IsRegular() {
		return kindError(info.Mode())
	}
	if at, err := os.Lstat(f.file.Name()); err != nil || !os.SameFile(mine, at) {
		return errors.Join(errors.New("its temporary file was replaced"), err)
	}
	return os.Rename(f.file.Name(), f.path)
}

// Discard removes the temporary file; the old file stays. After Close it does
// nothing.
func (f *File) Discard() {
	if f.moves {
		Remove(f.file)
	} else {
		f.file.Close()
	}
}
