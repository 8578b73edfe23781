package foreign

import (
	"errors"
	"fmt"
	"io"
	"os"

	"moontide/trace"
)

// mostSpooled bounds what is kept of texts that cannot be read again, in bytes.
const mostSpooled = 4 << 30

// wekaFile is a file whose parts can be read again.
type wekaFile struct {
	name  string
	path  string      // "" where it cannot be opened again
	text  *trace.Text // that is open already
	file  *os.File
	spool *spool // that has the text, nil where the file itself does
	base  int64  // where the text begins there: behind a byte order mark
}

// begin returns the text, from its beginning. What cannot be read again is kept
// in the spool as it is read.
func (f *wekaFile) begin(spool *spool) (in io.Reader, err error) {
	if f.text == nil {
		if f.file, err = trace.OpenFile(f.path); err != nil {
			return nil, err
		}
		if f.text, err = trace.NewText(f.file, f.name); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if f.path == "" || f.text.Packed() {
		f.spool, f.base = spool, spool.size
		return io.TeeReader(f.text, spool), nil
	}
	file, err := os.Open(f.path)
	if err != nil {
		return nil, fmt.Errorf("opening trace: %w", err)
	}
	defer file.Close()
	var mark [3]byte
	if n, _ := file.ReadAt(mark[:], 0); n == 3 && string(mark[:]) == "\xef\xbb\xbf" {
		f.base = 3
	}
	return f.text, nil
}

// rest closes the file until a part of it is read.
func (f *wekaFile) rest() error {
	err := f.text.Close()
	if f.file != nil {
		err = errors.Join(err, f.file.Close())
		f.file = nil
	}
	return err
}

// readAt reads a part of the text.
func (f *wekaFile) readAt(b []byte, offset int64) error {
	if f.spool != nil {
		_, err := f.spool.file.ReadAt(b, offset)
		return err
	}
	file, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.ReadAt(b, offset)
	return err
}

// Close closes what is open.
func (f *wekaFile) Close() error {
	var errs []error
	if f.text != nil {
		errs = append(errs, f.text.Close())
	}
	if f.file != nil {
		errs = append(errs, f.file.Close())
		f.file = nil
	}
	return errors.Join(errs...)
}

// spool is a temporary file of texts that come from a pipe or are compressed.
// The zero value is an empty one.
type spool struct {
	file    *os.File
	removed bool // while it is open, where the system allows that
	size    int64
}

// Write implements io.Writer.
func (s *spool) Write(b []byte) (n int, err error) {
	if s.size+int64(len(b)) > mostSpooled {
		return 0, fmt.Errorf("more than %d MiB that are compressed or no file: decompress them first", mostSpooled>>20)
	}
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "moontide-*.json"); err != nil {
			return 0, fmt.Errorf("keeping what cannot be read again: %w", err)
		}
		s.removed = os.Remove(s.file.Name()) == nil
	}
	n, err = s.file.Write(b)
	s.size += int64(n)
	return n, err
}

// Close closes and removes the file.
func (s *spool) Close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if !s.removed {
		err = errors.Join(err, os.Remove(s.file.Name()))
	}
	s.file = nil
	return err
}
