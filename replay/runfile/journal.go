package runfile

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"moontide/replay"
)

// SentFile lists the rows that were sent, one number per line, counted from 0. It
// is removed when the run is complete.
const SentFile = "sent.txt"

// journal writes sent.txt. Written lines survive a kill.
type journal struct {
	open sync.Once
	file *os.File
	err  error // from opening it
}

// Sending implements replay.Journal.
func (f *Writer) Sending(row int) error {
	s := &f.sent
	s.open.Do(func() {
		s.file, s.err = appendLines(filepath.Join(f.Dir, SentFile))
	})
	err := s.err
	if err == nil {
		var line [24]byte
		_, err = s.file.Write(append(strconv.AppendInt(line[:0], int64(row), 10), '\n'))
	}
	if err != nil {
		return fmt.Errorf("noting that row %d is sent: %w", row+1, err)
	}
	return nil
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}

// remove removes the journal of a complete run.
func (j *journal) remove(dir string) error {
	if err := os.Remove(filepath.Join(dir, SentFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sentRows counts the rows in the journal, if it exists.
func sentRows(dir string, rows int) (n int, err error) {
	f, err := os.Open(filepath.Join(dir, SentFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var seen replay.RowSet
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// A resumed run may have sent a row twice.
		if row, err := strconv.Atoi(lines.Text()); err == nil && row >= 0 && row < rows && !seen.Has(row) {
			seen.Add(row)
			n++
		}
	}
	return n, lines.Err()
}
