package capture

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

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
		f.mu.Lock()
		f.now.rows.Flush()
		f.mu.Unlock()
		killed := filepath.Join(t.TempDir(), name)
		content, _ := os.ReadFile(path)
		os.WriteFile(killed, content, 0o600)
		if name == "t.jsonl" {
			if got := arrivals(t, killed); !slices.Equal(got, []float64{3, 1, 2}) {
				t.Errorf("%s of a killed process: %v", name, got)
			}
		} else if r, err := format.Open(killed, format.Options{}); err != nil {
			t.Error(err)
		} else {
			n := 0
			for _, err := range r.Requests() {
				if err == nil {
					n++
				}
			}
			if r.Close(); n != 3 {
				t.Errorf("%s of a killed process has %d rows of 3", name, n)
			}
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
	f, err := CreateFiles(FilesConfig{Path: filepath.Join(dir, "t.jsonl.zst"), Size: 300})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if err := f.Write(row(float64(10 - i))); err != nil {
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

// A write that fails loses its row and says so; later rows go to another file.
func TestWriteFails(t *testing.T) {
	f, err := CreateFiles(FilesConfig{Path: filepath.Join(t.TempDir(), "t.jsonl")})
	if err != nil {
		t.Fatal(err)
	}
	f.now.out.Close() // as if the disk were gone
	big := row(1)
	big.HashIDs, big.InputLength = make([]uint64, 200_000), 200_000
	for range 3 { // more than is buffered
		err = errors.Join(err, f.Write(big))
	}
	if err == nil {
		t.Fatal("no error")
	}
	f.mu.Lock()
	f.retryAt = f.retryAt.Add(-retryAfter)
	f.mu.Unlock()
	if err := f.Write(row(5)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil || len(f.Paths()) != 2 {
		t.Fatal(err, f.Paths())
	}
	if got := arrivals(t, f.Paths()[1]); !slices.Equal(got, []float64{5}) {
		t.Error(got)
	}
}
