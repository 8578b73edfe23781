package spill

import (
	"errors"
	"os"
)

// File is a temporary file in the system's folder for such files. It is removed as soon
// as it is open, so that a killed process leaves none, or, where the system does not
// allow that, by Close.
type File struct {
	*os.File
	removed bool
}

// NewFile opens a new temporary file for reading and writing.
func NewFile() (*File, error) {
	f, err := os.CreateTemp("", "moontide-*.tmp")
	if err != nil {
		return nil, err
	}
	return &File{f, os.Remove(f.Name()) == nil}, nil
}

// Close closes and removes the file. It does nothing if f is nil.
func (f *File) Close() error {
	if f == nil {
		return nil
	}
	err := f.File.Close()
	if !f.removed {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
