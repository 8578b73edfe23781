package runfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"moontide/replay"
)

// SentFile lists the rows that were sent, one number per line, counted from 0. It
// is removed when the run is complete.
const SentFile = "sent.txt"

// Sending implements replay.Journal.
func (f *Writer) Sending(row int) error {
	var line [24]byte
	if err := f.sent.write(f.Dir, SentFile, append(strconv.AppendInt(line[:0], int64(row), 10), '\n')); err != nil {
		return fmt.Errorf("noting that row %d is sent: %w", row+1, err)
	}
	return nil
}

// removeJournal removes the journal of a complete run.
func removeJournal(dir string) error {
	if err := os.Remove(filepath.Join(dir, SentFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sentRows counts the rows in the journal, if it exists.
func sentRows(dir string, rows int) (n int, err error) {
	var seen replay.RowSet
	for line, err := range readLines(dir, SentFile) {
		if err != nil {
			return 0, err
		}
		// A resumed run may have sent a row twice.
		if row, err := strconv.Atoi(string(line)); err == nil && row >= 0 && row < rows && !seen.Has(row) {
			seen.Add(row)
			n++
		}
	}
	return n, nil
}
