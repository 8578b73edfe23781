package format

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// mostSpooled bounds what is kept of texts that cannot be read again, in bytes.
const mostSpooled = 4 << 30

// texts are files that are each read once to find where their parts stand, and
// then again, part by part. One of them is open at a time.
type texts struct {
	spool spool
	file  *os.File
	of    *textFile // that file is open for
}

// textFile is one of them.
type textFile struct {
	name    string
	path    string   // "" where it cannot be opened again
	text    *Text    // while it is read the first time, or is open already
	file    *os.File // of text, nil where the caller closes it
	spooled bool     // its parts stand in the spool
	base    int64    // where the text begins in the file: behind a byte order mark
}

// begin opens the text, to be read the first time. What of it is wanted later
// has to be spooled where f.spooled says so.
func (f *textFile) begin() (err error) {
	if f.text == nil {
		if f.file, err = OpenFile(f.path); err != nil {
			return err
		}
		if f.text, err = NewText(f.file, f.name); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if f.path == "" || f.text.Packed() {
		f.spooled = true
		return nil
	}
	file, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("opening trace: %w", err)
	}
	defer file.Close()
	var mark [3]byte
	if n, _ := file.ReadAt(mark[:], 0); n == 3 && string(mark[:]) == "\xef\xbb\xbf" {
		f.base = 3
	}
	return nil
}

// Close closes the text.
func (f *textFile) Close() error {
	var errs []error
	if f.text != nil {
		errs = append(errs, f.text.Close())
	}
	if f.file != nil {
		errs = append(errs, f.file.Close())
		f.file = nil
	}
	f.text = nil
	return errors.Join(errs...)
}

// readAt reads a part of a text: of its file, or of the spool.
func (t *texts) readAt(f *textFile, b []byte, offset int64) (err error) {
	if f.spooled {
		_, err = t.spool.file.ReadAt(b, offset)
		return err
	}
	if t.of != f {
		if err = t.close(); err != nil {
			return err
		}
		if t.file, err = os.Open(f.path); err != nil {
			return err
		}
		t.of = f
	}
	_, err = t.file.ReadAt(b, offset)
	return err
}

func (t *texts) close() (err error) {
	if t.file != nil {
		err = t.file.Close()
	}
	t.file, t.of = nil, nil
	return err
}

// Close closes what is open, and removes the spool.
func (t *texts) Close() error { return errors.Join(t.close(), t.spool.Close()) }

// tee returns the text, what is read of which is spooled where it has to be. It
// begins in the spool, or in the file, at base.
func (t *texts) tee(f *textFile) io.Reader {
	if !f.spooled {
		return f.text
	}
	f.base = t.spool.size
	return io.TeeReader(f.text, &t.spool)
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
