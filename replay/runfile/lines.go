package runfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"moontide/replay"
)

// lineFile is a file of lines that the first write opens. Written lines survive a
// kill. It is safe for concurrent use.
type lineFile struct {
	open sync.Once
	file *os.File
	err  error // from opening it
}

// write appends a line, with its newline, to a file in a run's folder.
func (l *lineFile) write(dir, name string, line []byte) error {
	l.open.Do(func() { l.file, l.err = appendLines(filepath.Join(dir, name)) })
	if l.err != nil {
		return l.err
	}
	_, err := l.file.Write(line)
	return err
}

func (l *lineFile) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// maxLine is far more than a line of these files needs, in bytes.
const maxLine = 1 << 20

// readLines yields the lines of a file in a run's folder, none if it does not
// exist. A line is valid until the next one.
func readLines(dir, name string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, err := os.Open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, maxLine)
		for lines.Scan() {
			if !yield(lines.Bytes(), nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, err)
		}
	}
}

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

// Resume opens the folder of a killed or stopped run to append records. An
// incomplete last line is removed. It fails if the run is still active.
func Resume(dir string) (*Writer, error) {
	f, err := openWriter(dir, os.O_RDWR, func(f *Writer) (err error) {
		if err = dropCutLine(f.file); err == nil {
			f.gaps, err = readGaps(dir)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("resuming the run in %s: %w", dir, err)
	}
	return f, nil
}

// appendLines opens a file to append lines. An incomplete last line is removed.
func appendLines(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	if err := dropCutLine(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// dropCutLine removes an incomplete last line and seeks to the end.
func dropCutLine(f *os.File) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	text := make([]byte, 64<<10)
	for end > 0 {
		from := max(end-int64(len(text)), 0)
		part := text[:end-from]
		if _, err := f.ReadAt(part, from); err != nil {
			return err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			end = from + int64(i) + 1
			break
		}
		end = from
	}
	if err := f.Truncate(end); err != nil {
		return err
	}
	_, err = f.Seek(end, io.SeekStart)
	return err
}
