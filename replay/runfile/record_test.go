package runfile

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"moontide/replay"
	"moontide/trace"
)

func anyRecord(t *rapid.T) replay.Record {
	instant := rapid.Map(rapid.Int64Range(0, int64(49*24*time.Hour)), func(n int64) time.Duration { return time.Duration(n) })
	maybe := func(name string) replay.Instant {
		if rapid.Bool().Draw(t, "has "+name) {
			return trace.Some(instant.Draw(t, name))
		}
		return replay.Instant{}
	}
	count := func(name string) trace.Opt[int] {
		if rapid.Bool().Draw(t, "has "+name) {
			return trace.Some(rapid.IntRange(0, 1e6).Draw(t, name))
		}
		return trace.Opt[int]{}
	}
	rec := replay.Record{
		Request: trace.Request{Timestamp: trace.Some(1.5), InputLength: 10, OutputLength: 2, HashIDs: []uint64{1}},
		Row:     rapid.IntRange(0, 1e6).Draw(t, "row"),
		Due:     instant.Draw(t, "due"), Ready: instant.Draw(t, "ready"), Done: instant.Draw(t, "done"),
		Sent: maybe("sent"), First: maybe("first"), FirstVisible: maybe("first visible"), Last: maybe("last"),
		ReasoningOnly: rapid.Bool().Draw(t, "reasoning only"),
		ConnectTime:   instant.Draw(t, "opening"), MaxStampError: instant.Draw(t, "blur"), FirstStampError: instant.Draw(t, "first blur"), Target: rapid.IntRange(0, 9).Draw(t, "target"),
		Stamps:  rapid.SampledFrom([]replay.Stamps{"", replay.KernelStamps, replay.ClientStamps}).Draw(t, "stamps"),
		Chunks:  rapid.IntRange(0, 9).Draw(t, "chunks"),
		Counts:  replay.Counts{Input: count("input"), Output: count("output"), Cached: count("cached"), Reasoning: count("reasoning")},
		Retries: rapid.IntRange(0, 3).Draw(t, "retries"),
		Status:  rapid.IntRange(0, 599).Draw(t, "status"),
	}
	for range rapid.IntRange(0, 4).Draw(t, "gaps") {
		rec.Gaps = append(rec.Gaps, instant.Draw(t, "gap"))
	}
	if rapid.Bool().Draw(t, "failed") {
		rec.Class, rec.Error = replay.Truncated, rapid.String().Draw(t, "error")
	}
	rec.MissingDone = rapid.Bool().Draw(t, "missing [DONE]")
	if rapid.Bool().Draw(t, "has model") {
		rec.Extra = []byte(`{"model": "m"}`)
	}
	return rec
}

func readRecords(t testing.TB, dir string) ([]replay.Record, *Reader) {
	t.Helper()
	recorded, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer recorded.Close()
	var records []replay.Record
	for rec, err := range recorded.Records() {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, rec)
	}
	return records, recorded
}

// Durations are written like floats, as far as floats are precise enough.
func TestDurationsAreWrittenAsMilliseconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 1: "0.000001", time.Millisecond: "1", 1_500_000: "1.5", 1_000_001: "1.000001", 120_000_000: "120", 100: "0.0001", -1_500_000: "-1.5",
	} {
		if got := string(appendDuration(nil, d)); got != want {
			t.Errorf("%v is written as %s ms", d, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(-1e15, 1e15).Draw(t, "d"))
		if got, want := string(appendDuration(nil, d)), string(trace.AppendMS(nil, float64(d)/float64(time.Millisecond))); got != want {
			t.Fatalf("%d ns: %s, want %s", d, got, want)
		}
	})
}

func TestRecordOfAReplayedResult(t *testing.T) {
	row := trace.Request{InputLength: 3, OutputLength: 1,
		Extra: []byte(`{"model": "m", "due_ms": 9, "status": 500, "error": "old", "input_tokens": 7}`)}
	line, err := AppendRecord(nil, replay.Record{Request: row, Done: time.Second, Status: 200}, false)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"input_length": 3, "output_length": 1, "model": "m", "row": 0, "due_ms": 0, "ready_ms": 0, "done_ms": 1000, "chunks": 0, "status": 200}`
	if string(line) != want {
		t.Errorf("got\n%s\nwant\n%s", line, want)
	}
}

func TestTextsBecomeDigests(t *testing.T) {
	row := trace.Request{InputLength: 3, OutputLength: 1, Extra: []byte(`{"messages": [{"role": "user", "content": "secret"}], "text_input": "secret"}`)}
	line, err := AppendRecord(nil, replay.Record{Request: row}, false)
	if err != nil {
		t.Fatal(err)
	}
	digest := fmt.Sprintf(`"text_input_sha256": "%x"`, sha256.Sum256([]byte(`"secret"`)))
	if strings.Contains(string(line), `"secret"`) || !strings.Contains(string(line), digest) || !strings.Contains(string(line), `"messages_sha256": "`) {
		t.Errorf("got %s", line)
	}
	if line, _ = AppendRecord(nil, replay.Record{Request: row}, true); !strings.Contains(string(line), `"text_input": "secret"`) {
		t.Errorf("kept: %s", line)
	}
}

func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	run := Run{Version: "v", Rows: 2, Started: time.Unix(5, 0).UTC()}
	f, err := Create(dir, run)
	if err != nil {
		t.Fatal(err)
	}
	first := replay.Record{Request: trace.Request{InputLength: 1}, Done: 1, Status: 200}
	if err := f.Record(first); err != nil {
		t.Fatal(err)
	}
	// Records are on disk before the folder is closed.
	if got, _ := readRecords(t, dir); len(got) != 1 {
		t.Errorf("%d records while the run lasts, want 1", len(got))
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	run.Sent = 1
	if err := f.WriteRun(run); err != nil {
		t.Fatal(err)
	}

	// A kill cuts the last line.
	path := filepath.Join(dir, RequestsFile)
	text, _ := os.ReadFile(path)
	os.WriteFile(path, append(text, text[:len(text)/2]...), 0o644)
	got, recorded := readRecords(t, dir)
	if d := cmp.Diff([]replay.Record{first}, got); d != "" {
		t.Error(d)
	}
	if n, _ := recorded.Damaged(); n != 1 {
		t.Errorf("%d damaged lines, want 1", n)
	}
	if d := cmp.Diff(run, recorded.Run); d != "" {
		t.Error(d)
	}

	if _, err := Create(dir, run); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a folder in use: %v", err)
	}
	if err := CheckFolder(t.TempDir()); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
	if err := CheckFolder(path); err == nil {
		t.Error("a file was taken for a folder")
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a run's folder") {
		t.Errorf("opening an empty folder: %v", err)
	}
}

// A kill may come at any moment while a folder is made: it leaves either a run
// that can be resumed or a folder that does not prevent a new run.
func TestFolderOfAKillAtItsBeginning(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "run")
	if f, err := Create(whole, Run{Rows: 3}); err != nil {
		t.Fatal(err)
	} else {
		f.Close()
	}
	if got, recorded := readRecords(t, whole); len(got) != 0 || recorded.Run.Rows != 3 {
		t.Errorf("%d records, %+v", len(got), recorded.Run)
	}
	for name, files := range map[string]map[string]string{
		"nothing":         {},
		"half a run.json": {"run.json.part123": `{"vers`, RequestsFile: ""},
		"a record":        {RequestsFile: ""},
	} {
		dir := t.TempDir()
		for file, text := range files {
			os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644)
		}
		if err := TryFolder(dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		f, err := Create(dir, Run{Rows: 3})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := Create(dir, Run{Rows: 4}); err == nil {
			t.Errorf("%s: two runs have one folder", name)
		}
		f.Close()
		if _, recorded := readRecords(t, dir); recorded.Run.Rows != 3 {
			t.Errorf("%s: %+v", name, recorded.Run)
		}
	}
	dir := t.TempDir() // of another process that holds the lock, without run.json yet
	f, err := Create(dir, Run{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	os.Remove(filepath.Join(dir, RunFile))
	if _, err := Create(dir, Run{}); err == nil || !strings.Contains(err.Error(), "still going") {
		t.Errorf("two make one folder: %v", err)
	}
	for name, text := range map[string]string{"notes.txt": "", RequestsFile: "x", RunFile: ""} {
		dir := t.TempDir()
		os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
		if _, err := Create(dir, Run{}); err == nil || !strings.Contains(err.Error(), "is not empty") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TryFolder checks that a folder can be made, and leaves nothing.
func TestTryFolder(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"run", "a/b/c", "a/./b/../c", "."} {
		if err := TryFolder(filepath.Join(dir, path)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	os.WriteFile(filepath.Join(dir, "file"), nil, 0o644)
	os.Mkdir(filepath.Join(dir, "used"), 0o755)
	os.WriteFile(filepath.Join(dir, "used", "x"), nil, 0o644)
	for path, want := range map[string]string{"file": "making run folder", "file/x": "making run folder", "used": "is not empty", "a\x00b": "making run folder"} {
		if err := TryFolder(dir + "/" + path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", path, err)
		}
	}
	if entries := must(os.ReadDir(dir)); len(entries) != 2 {
		t.Errorf("it left %v", entries)
	}
	if os.Mkdir(filepath.Join(dir, "closed"), 0o555); os.Getuid() != 0 { // root may write anywhere
		if err := TryFolder(filepath.Join(dir, "closed", "run")); err == nil {
			t.Error("a folder that cannot be written to")
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	rec := replay.Record{Request: trace.Request{InputLength: 12035, OutputLength: 342, HashIDs: make([]uint64, 24)}, Status: 200}
	for range 341 {
		rec.Gaps = append(rec.Gaps, 8123456)
	}
	b.Run("chunks=342", func(b *testing.B) {
		b.ReportAllocs()
		var line []byte
		for b.Loop() {
			line, _ = AppendRecord(line[:0], rec, false)
		}
		b.SetBytes(int64(len(line)))
	})
}
