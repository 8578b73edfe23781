package capture

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"moontide/trace"
	"moontide/trace/format"
)

func row(ms float64) trace.Request {
	return trace.Request{Timestamp: trace.Some(ms), InputLength: 10, OutputLength: 1, HashIDs: []uint64{7}}
}

func arrivals(t *testing.T, path string) (all []float64) {
	t.Helper()
	r, err := format.Open(path, format.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for row, err := range r.Requests() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, row.Timestamp.Value)
	}
	return all
}

// Rows are readable before the file is complete, sorted when it is, and all there.
func TestFiles(t *testing.T) {
	for _, name := range []string{"t.jsonl", "t.jsonl.gz", "t.jsonl.zst"} {
		path := filepath.Join(t.TempDir(), name)
		f, err := CreateFiles(FilesConfig{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		for _, ms := range []float64{3, 1, 2} {
			if err := f.Write(row(ms)); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Flush(); err != nil {
			t.Fatal(err)
		}
		killed := filepath.Join(t.TempDir(), name)
		content, _ := os.ReadFile(path)
		os.WriteFile(killed, content, 0o600)
		if got := arrivals(t, killed); !slices.Equal(got, []float64{3, 1, 2}) {
			t.Errorf("%s of a killed process: %v", name, got)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if got := arrivals(t, path); !slices.Equal(got, []float64{1, 2, 3}) {
			t.Errorf("%s: %v", name, got)
		}
		if _, err := CreateFiles(FilesConfig{Path: path}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("a file that exists: %v", err)
		}
	}
}

// Each file ends at the limit, and no row is lost between them.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	f, err := CreateFiles(FilesConfig{Path: filepath.Join(dir, "t.jsonl.zst"), Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if err := f.Write(row(float64(10 - i))); err != nil {
			t.Fatal(err)
		}
		if err := f.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var all []float64
	for i, path := range f.Paths() {
		if i == 1 && filepath.Base(path) != "t-0002.jsonl.zst" {
			t.Error(path)
		}
		part := arrivals(t, path)
		if !slices.IsSorted(part) {
			t.Errorf("%s is not sorted: %v", path, part)
		}
		all = append(all, part...)
	}
	if slices.Sort(all); len(all) != 10 || len(f.Paths()) < 3 || all[0] != 1 || all[9] != 10 {
		t.Errorf("%d files, %v", len(f.Paths()), all)
	}
}

// A full disk loses the rows since the last flush, no others, and leaves no files
// without rows, however often writing is tried again.
func TestWriteFails(t *testing.T) {
	for _, name := range []string{"t.jsonl", "t.jsonl.gz", "t.jsonl.zst"} {
		dir := t.TempDir()
		full := false
		create := func(path string) (output, error) {
			out, err := createNew(path)
			return disk{out, &full}, err
		}
		f, err := CreateFiles(FilesConfig{Path: filepath.Join(dir, name), create: create})
		if err != nil {
			t.Fatal(err)
		}
		write := func(ms float64) error {
			f.retryAt = time.Time{}
			return errors.Join(f.Write(row(ms)), f.Flush())
		}
		if err := errors.Join(write(1), f.Write(row(2))); err != nil {
			t.Fatal(err)
		}
		full = true
		for i := range 4 { // it stays full
			if err := f.Flush(); err == nil {
				t.Error("no error of a full disk")
			}
			if err := f.Write(row(3)); err == nil {
				t.Error("writing is tried again at once")
			}
			if f.retryAt = (time.Time{}); i < 3 {
				if err := f.Write(row(4)); err != nil {
					t.Fatal(err)
				}
			}
		}
		full = false
		if err := errors.Join(write(5), f.Close()); err != nil {
			t.Fatal(err)
		}
		if len(f.Paths()) != 2 {
			t.Fatal(f.Paths())
		}
		if got := slices.Concat(arrivals(t, f.Paths()[0]), arrivals(t, f.Paths()[1])); !slices.Equal(got, []float64{1, 5}) {
			t.Errorf("%s: %v", name, got)
		}
		if files, _ := os.ReadDir(dir); len(files) != 2 {
			t.Errorf("%d files", len(files))
		}
	}
}

// disk is a file on a full disk, which takes half a row.
type disk struct {
	output
	full *bool
}

func (d disk) Write(p []byte) (int, error) {
	if *d.full {
		n, _ := d.output.Write(p[:len(p)/2])
		return n, errors.New("no space left on device")
	}
	return d.output.Write(p)
}
