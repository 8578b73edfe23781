package runfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"moontide/replay"
	"moontide/replay/settings"
	"moontide/trace"
)

// keepsRows makes a folder with records, as left by a killed run.
func keepsRows(t testing.TB, records ...replay.Record) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	f, err := Create(dir, Run{Outcome: Outcome{Rows: 100}})
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
	f, err := Create(dir, Run{Outcome: Outcome{Rows: 10}})
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
	if err := f.WriteRun(Run{Outcome: Outcome{Rows: 10, Sent: 4, Ended: time.Unix(1, 0), Stopped: true}}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, SentFile)
	os.WriteFile(path, append(must(os.ReadFile(path)), '8'), 0o644)
	if f, err = Resume(dir); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.WriteRun(Run{Outcome: Outcome{Rows: 10}}), f.Sending(5)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, recorded = readRecords(t, dir); recorded.Run.Sent != 5 || recorded.Run.NotSent != 5 {
		t.Errorf("resumed: %d sent, %d not", recorded.Run.Sent, recorded.Run.NotSent)
	}
	if err := f.WriteRun(Run{Outcome: Outcome{Rows: 10, Sent: 5, Ended: time.Unix(1, 0)}}); err != nil {
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

// Each gap is counted once, with the right length within the resolution.
func TestGapsAreCountedAsLong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gap := time.Duration(rapid.Int64Range(0, int64(300*time.Hour)).Draw(t, "gap"))
		counts := gapCounts{}
		counts.add(gap)
		list := counts.list()
		if len(list) != 1 || list[0].Count != 1 {
			t.Fatal(list)
		}
		if off := float64(list[0].NS - int64(gap)); max(off, -off) > GapResolution*float64(gap) {
			t.Fatalf("%d ns is counted as %d", gap, list[0].NS)
		}
	})
}

// A folder without chunk times has a histogram of the gaps of successful requests,
// which a resumed run continues.
func TestFolderWithoutChunkTimes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	folder, err := Create(dir, Run{Settings: settings.Settings{Output: settings.Output{NoChunkTimes: true}}, Outcome: Outcome{Rows: 3}})
	if err != nil {
		t.Fatal(err)
	}
	record := func(f *Writer, row int, class replay.Class, gaps ...time.Duration) {
		rec := replay.Record{Request: trace.Request{InputLength: 1, OutputLength: 4}, Row: row, Class: class, Chunks: len(gaps) + 1, Gaps: gaps}
		if err := f.Record(rec); err != nil {
			t.Fatal(err)
		}
	}
	folder.NoChunkTimes = true
	record(folder, 0, replay.OK, 100, 100, 200)
	record(folder, 1, replay.Truncated, 50)
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	records, recorded := readRecords(t, dir)
	if len(records) != 2 || records[0].Gaps != nil || records[0].Chunks != 4 || records[1].Gaps != nil {
		t.Errorf("records: %+v", records)
	}
	if got := recorded.Gaps; len(got) != 2 || got[0] != (GapCount{100, 2}) || got[1] != (GapCount{200, 1}) {
		t.Errorf("gaps: %v", got)
	}
	if folder, err = Resume(dir); err != nil {
		t.Fatal(err)
	}
	folder.NoChunkTimes = true
	record(folder, 2, replay.OK, 200)
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	if _, recorded = readRecords(t, dir); len(recorded.Gaps) != 2 || recorded.Gaps[1] != (GapCount{200, 2}) {
		t.Errorf("gaps of the resumed run: %v", recorded.Gaps)
	}
	if err := os.WriteFile(filepath.Join(dir, GapsFile), []byte("{\"gap_ns\": -1}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil {
		t.Error("a gap before its beginning is taken")
	}
}

func samplesOf(t *testing.T, dir string) (all []Sample) {
	t.Helper()
	for s, err := range Samples(dir) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// Samples reach the operating system when they are written, so they survive a
// kill, and an incomplete line is harmless.
func TestSamples(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	f, err := Create(dir, Run{})
	if err != nil {
		t.Fatal(err)
	}
	if got := samplesOf(t, dir); got != nil {
		t.Errorf("before any: %v", got)
	}
	want := []Sample{
		{AtMS: 0, Server: &ServerFigures{Engine: "vllm", Engines: 1, KVUse: new(0.0)}},
		{AtMS: 1000.5, SpanMS: 1000.5, CPU: 0.1, MachineShare: 0.05, GCPauses: 2, GCPauseMS: 0.3, GCPauseMaxMS: 0.2, SchedP50MS: 0.01, SchedP99MS: 0.02,
			ReadDelay: ReadDelay{Reads: 7, P99MS: 1.5}, RSSBytes: 1 << 33, InFlight: 3, Sent: 5, Done: 2, ServerError: "no\nanswer"},
	}
	for _, s := range want {
		if err := f.Sample(s); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, samplesOf(t, dir)); diff != "" { // nothing was closed
		t.Error(diff)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, SamplesFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(text, `{"at_ms": 20`...), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, samplesOf(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// The run.json of versions without settings has them in several places.
func TestOlderRun(t *testing.T) {
	run, err := Unmarshal([]byte(`{"version": "v0.9", "seed": 7, "salt": "x", "rows": 3, "flags": ["--isl=3000", "--gone=1", "--header=A: ***", "--routing=prefix"],
		"limits": {"max_concurrency": 4, "closed": true, "max_turns": 2, "timeout_s": 3600, "first_byte_timeout_s": 1800, "idle_timeout_s": 120, "duration_s": 1.5, "retries": 1},
		"window": {"warmup_s": 2.5}, "thresholds": {"max_lag_ms": 5}, "no_chunk_times": true, "leg": {"deployment": "a", "shape": "3000:150", "axis": "concurrency", "level": "8"},
		"part": {"run_id": "r", "number": 1, "of": 2}, "target": {"url": "http://h", "exact_isl": true, "live_answers": true}, "trace": {"name": "t", "speedup": 2, "rate": 6, "limit": 3}, "schedule_sha256": "s"}`))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, text := range run.Settings.Given() {
		got[name] = text
	}
	want := map[string]string{
		"seed": "7", "salt": "x", "isl": "3000", "routing": "prefix", "max-concurrency": "8", "closed": "true", "max-turns": "2", "timeout": "1h,30m,2m", "duration": "1.5s", "retry": "1",
		"warmup-time": "2.5s", "verdict": "lag=5ms", "no-chunk-times": "true", "exact-isl": "true", "answers": "live", "speedup": "2", "rate": "3", "limit": "3",
	}
	if diff := cmp.Diff(want, got); diff != "" || run.Rows != 3 || run.Target.URL != "http://h" || run.Trace.Name != "t" || run.MaxConcurrency() != 4 || run.Point.String() != "a, 3000:150, concurrency 8" {
		t.Errorf("%+v, point %v, -want +got:\n%s", run.Outcome, run.Point, diff)
	}
	for text, want := range map[string]string{`{"settings": {"verdict": "late=1"}}`: "verdict \"late\" is no limit", `{"settings": 1}`: "cannot unmarshal", "[]": "cannot unmarshal"} {
		if _, err := Unmarshal([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
