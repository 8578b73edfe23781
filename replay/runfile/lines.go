package runfile

import (
	"bufio"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"
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
