package runfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"moontide/replay"
	"moontide/trace"
)

// keepsRows makes a folder with records, as left by a killed run.
func keepsRows(t testing.TB, records ...replay.Record) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	f, err := Create(dir, Run{Rows: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range records {
		if err := f.Record(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A resumed folder continues after its last complete line. Only one process at a
// time can resume it.
func TestResumeFolder(t *testing.T) {
	first := replay.Record{Request: trace.Request{InputLength: 1}, Done: 1, Status: 200}
	for _, cut := range []string{"", `{"input_length"`, strings.Repeat("x", 200_000)} {
		dir := keepsRows(t, first)
		path := filepath.Join(dir, RequestsFile)
		text, _ := os.ReadFile(path)
		os.WriteFile(path, append(text, cut...), 0o644)
		f, err := Resume(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Resume(dir); err == nil || !strings.Contains(err.Error(), "still going") {
			t.Errorf("two go on with one run: %v", err)
		}
		second := replay.Record{Request: trace.Request{InputLength: 2}, Row: 1, Done: 2, Status: 200}
		if err := f.Record(second); err != nil {
			t.Fatal(err)
		}
		f.Close()
		got, recorded := readRecords(t, dir)
		if n, _ := recorded.Damaged(); n > 0 || cmp.Diff([]replay.Record{first, second}, got) != "" {
			t.Errorf("%d damaged lines, %+v", n, got)
		}
	}
	dir := keepsRows(t)
	os.WriteFile(filepath.Join(dir, RequestsFile), []byte("half a line"), 0o644)
	if f, err := Resume(dir); err != nil {
		t.Error(err)
	} else if f.Close(); len(must(os.ReadFile(filepath.Join(dir, RequestsFile)))) != 0 {
		t.Error("a line that is not whole stays")
	}
	if _, err := Resume(t.TempDir()); err == nil {
		t.Error("a folder without a run")
	}
}

func TestSentRowsAreCounted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	f, err := Create(dir, Run{Rows: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []int{0, 3, 9, 3, 1} {
		if err := f.Sending(row); err != nil {
			t.Fatal(err)
		}
		if got, _ := readRecords(t, dir); len(got) != 0 {
			t.Fatal("it is in the record")
		}
	}
	_, recorded := readRecords(t, dir)
	if recorded.Run.Sent != 4 || recorded.Run.NotSent != 6 {
		t.Errorf("%d sent, %d not", recorded.Run.Sent, recorded.Run.NotSent)
	}
	f.Close()
	// A stopped run is resumed and killed: its journal adds to the rows sent
	// before. The kill, or a full disk, cut a line.
	if err := f.WriteRun(Run{Rows: 10, Sent: 4, Ended: time.Unix(1, 0), Stopped: true}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, SentFile)
	os.WriteFile(path, append(must(os.ReadFile(path)), '8'), 0o644)
	if f, err = Resume(dir); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.WriteRun(Run{Rows: 10}), f.Sending(5)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, recorded = readRecords(t, dir); recorded.Run.Sent != 5 || recorded.Run.NotSent != 5 {
		t.Errorf("resumed: %d sent, %d not", recorded.Run.Sent, recorded.Run.NotSent)
	}
	if err := f.WriteRun(Run{Rows: 10, Sent: 5, Ended: time.Unix(1, 0)}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, SentFile)); err == nil {
		t.Error("a run that ended keeps the file")
	}
	if _, recorded = readRecords(t, dir); recorded.Run.Sent != 5 {
		t.Errorf("%d sent", recorded.Run.Sent)
	}
}

func BenchmarkSending(b *testing.B) {
	f, err := Create(filepath.Join(b.TempDir(), "run"), Run{})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for i := 0; b.Loop(); i++ {
		if err := f.Sending(i); err != nil {
			b.Fatal(err)
		}
	}
}
