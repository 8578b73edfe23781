package runfile

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

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
