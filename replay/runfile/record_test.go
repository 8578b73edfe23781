package runfile

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"moontide/replay"
	"moontide/replay/openai"
	"moontide/replay/settings"
	"moontide/trace"
	"moontide/trace/format"
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

func readRecords(t rapid.TB, dir string) ([]replay.Record, *Reader) {
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
	run := Run{Outcome: Outcome{Version: "v", Rows: 2, Started: time.Unix(5, 0).UTC()}}
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
	if d := cmp.Diff(run, recorded.Run, cmpopts.IgnoreUnexported(settings.Settings{}, openai.Config{})); d != "" {
		t.Error(d)
	}

	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a run's folder") {
		t.Errorf("opening an empty folder: %v", err)
	}
}

// A kill may come at any moment while a folder is made: it leaves either a run
// that can be resumed or a folder that does not prevent a new run.
func TestFolderOfAKillAtItsBeginning(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"nothing":         {},
		"half a run.json": {"run.json.moontide-part123": `{"vers`, RequestsFile: ""},
		"a record":        {RequestsFile: ""},
	} {
		dir := t.TempDir()
		for file, text := range files {
			os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644)
		}
		if err := TryFolder(dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		f, err := Create(dir, Run{Outcome: Outcome{Rows: 3}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := Create(dir, Run{Outcome: Outcome{Rows: 4}}); err == nil {
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

// parsedSlowly reads a line with the slow parser.
func parsedSlowly(line []byte) (replay.Record, error) {
	var row trace.Request
	if err := format.ParseRow(line, &row); err != nil {
		return replay.Record{}, err
	}
	return parseRecord(row)
}

// Both parsers read what AppendRecord writes, to the nanosecond. The fast one takes every
// line with a plain error.
func TestRecordsAreReadAsWritten(t *testing.T) {
	drawn, taken := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		drawn++
		want := anyRecord(t)
		line, err := AppendRecord(nil, want, false)
		if err != nil {
			t.Fatal(err)
		}
		text := string(line)
		got, err := parsedSlowly(line)
		if d := cmp.Diff(want, got); err != nil || d != "" || !json.Valid(line) {
			t.Fatal(text, err, d)
		}
		if !scanRecord(line, &got, &arena{}) {
			plain := want.Class == replay.OK || !strings.ContainsFunc(want.Error, func(r rune) bool { return r < 0x20 || r > 0x7e || r == '"' || r == '\\' })
			if plain {
				t.Fatalf("not taken: %s", line)
			}
			return
		}
		taken++
		if string(line) != text {
			t.Fatalf("the line was changed to %s", line)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
	if 3*taken < drawn {
		t.Errorf("%d of %d lines were taken", taken, drawn)
	}
}

// The fast parser agrees with the slow parser on every line it accepts, including
// damaged ones.
func FuzzScanRecord(f *testing.F) {
	for _, line := range []string{
		`{"timestamp": 1, "input_length": 3, "output_length": 1, "hash_ids": [1, 2], "session_id": "s", "row": 0, "due_ms": 0.5, "ready_ms": 1, "sent_ms": 1.000001, "first_ms": 3, "last_ms": 4, "done_ms": 5, "chunks": 2, "chunk_ms": [1, 0.25], "stamps": "kernel", "status": 200}`,
		`{"input_length": 3, "output_length": 1, "x": {"a": 1, "row": 5}, "row": 1, "due_ms": 0, "ready_ms": 0, "done_ms": 1, "status": 500, "error": "e", "error_class": "status"}`,
		`{"input_length": 3, "output_length": 1, "row": 1, "due_ms": -0.5, "done_ms": 01, "status": 1e3}`,
		`{"input_length": 3, "output_length": 1, "row": 1, "row": 2, "done_ms": 1}`,
		`{"input_length": 3, "output_length": 1, "row": 1, "done_ms": 1, "input_length": 4}`,
		`{"input_length": 3, "output_length": 1, "row": 1, "done_ms": 1, "chunk_ms": []}`,
		`{"input_length": 3, "output_length": 1, "due_ms": 9, "model": "m", "row": 1, "done_ms": 1}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var got replay.Record
		if !scanRecord(line, &got, &arena{}) {
			return
		}
		want, err := parsedSlowly(line)
		if err != nil {
			t.Fatalf("taken, but %v: %q", err, line)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%q: %s", line, d)
		}
	})
}

// Records that share memory have independent values.
func TestScannedRecordsMayBeKept(t *testing.T) {
	a := newArena(batchSize)
	var kept, want []replay.Record
	for i := range 200 {
		rec := replay.Record{Request: trace.Request{InputLength: 1000, HashIDs: []uint64{uint64(i), 7}}, Row: i, Status: 200}
		for k := range i * 3 {
			rec.Gaps = append(rec.Gaps, time.Duration(i*1000+k))
		}
		line, _ := AppendRecord(nil, rec, false)
		var got replay.Record
		if !scanRecord(line, &got, &a) {
			t.Fatalf("not taken: %s", line)
		}
		if i%2 == 0 { // appending reallocates
			_ = append(got.Gaps, -1)
			_ = append(got.HashIDs, 99)
		}
		kept, want = append(kept, got), append(want, rec)
	}
	if d := cmp.Diff(want, kept); d != "" {
		t.Error(d)
	}
}

// Records are returned in the order of their lines, however many there are, and
// invalid lines are counted.
func TestManyRecords(t *testing.T) {
	dir := t.TempDir()
	if err := WriteJSON(filepath.Join(dir, RunFile), Run{Outcome: Outcome{Ended: time.Unix(1, 0)}}); err != nil {
		t.Fatal(err)
	}
	const n = 20_000
	var text []byte
	for i := range n {
		rec := replay.Record{Request: trace.Request{InputLength: 1000}, Row: i, Status: 200, Gaps: make([]time.Duration, i%50)}
		text, _ = AppendRecord(text, rec, false)
		text = append(text, '\n')
		if i%5000 == 4999 {
			text = append(text, "{\"input_length\": 1, \"out\n\n"...)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, RequestsFile), text, 0o644); err != nil {
		t.Fatal(err)
	}
	records, recorded := readRecords(t, dir)
	for i, rec := range records {
		if rec.Row != i || len(rec.Gaps) != i%50 {
			t.Fatalf("record %d is of row %d with %d gaps", i, rec.Row, len(rec.Gaps))
		}
	}
	damaged, reasons := recorded.Damaged()
	if len(records) != n || damaged != 4 || !strings.Contains(reasons[0].Error(), ":5001: ") || !strings.Contains(reasons[3].Error(), ":20007: ") {
		t.Errorf("%d records, %d damaged: %v", len(records), damaged, reasons)
	}
	// Ending the iteration early does not block.
	recorded, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer recorded.Close()
	for rec := range recorded.Records() {
		if rec.Row == 3 {
			break
		}
	}
}

func BenchmarkScanRecord(b *testing.B) {
	for _, gaps := range []int{0, 100} {
		b.Run(fmt.Sprintf("gaps=%d", gaps), func(b *testing.B) {
			rec := replay.Record{Request: trace.Request{InputLength: 12035, OutputLength: 342, HashIDs: make([]uint64, 24)}, Status: 200, Due: 123456789}
			for i := range gaps {
				rec.Gaps = append(rec.Gaps, time.Duration(8123456+i*977))
			}
			line, _ := AppendRecord(nil, rec, false)
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			a := newArena(batchSize)
			for b.Loop() {
				if !scanRecord(line, &rec, &a) {
					b.Fatal("not taken")
				}
			}
		})
	}
}

// A value that does not decode or is out of range damages its own line only.
func TestUndecodableNumbersDamageOneLine(t *testing.T) {
	for name, change := range map[string][2]string{
		"infinite time":     {`"done_ms": [0-9.]+`, `"done_ms": 1e999`},
		"time of centuries": {`"done_ms": [0-9.]+`, `"done_ms": 9e15`},
		"scanned centuries": {`"done_ms": [0-9.]+`, `"done_ms": 9000000000000`},
		"not a number":      {`"chunks": [0-9]+`, `"chunks": 12x`},
		"a large count":     {`"chunks": [0-9]+`, `"chunks": 2147483648`},
		"a negative count":  {`"chunks": [0-9]+`, `"chunks": -1`},
		"a fraction":        {`"chunks": [0-9]+`, `"chunks": 1.5`},
		"negative tokens":   {`"chunk_tokens": \[2, 1\]`, `"chunk_tokens": [2, -1]`},
		"no result":         {`"done_ms": [0-9.]+`, `"other": 1`},
	} {
		var records []replay.Record
		for i := range 3 {
			records = append(records, replay.Record{Row: i, Request: trace.Request{InputLength: 10}, Chunks: 2, ChunkTokens: []int32{2, 1}, Done: 5_500_000})
		}
		dir := keepsRows(t, records...)
		path := filepath.Join(dir, RequestsFile)
		lines := strings.SplitAfter(string(must(os.ReadFile(path))), "\n")
		broken := regexp.MustCompile(change[0]).ReplaceAllString(lines[1], change[1])
		if broken == lines[1] {
			t.Fatalf("%s: nothing to change in %s", name, lines[1])
		}
		lines[1] = broken
		if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o644); err != nil {
			t.Fatal(err)
		}
		got, recorded := readRecords(t, dir)
		damaged, reasons := recorded.Damaged()
		if len(got) != 2 || damaged != 1 || !strings.Contains(reasons[0].Error(), RequestsFile+":2: ") {
			t.Errorf("%s: %d records, %d damaged: %v", name, len(got), damaged, reasons)
		}
	}
}

// Counts whose sums over the parts of a run could overflow are refused.
func TestHostileCountsAreRefused(t *testing.T) {
	for _, text := range []string{
		`{"version": "v", "rows": 9223372036854775807}`,
		`{"version": "v", "sent": -1}`,
		`{"version": "v", "not_sent": -9223372036854775808}`,
		`{"version": "v", "limits": {"max_concurrency": 9223372036854775807}}`,
		`{"version": "v", "read_delay": {"reads": 18446744073709551615}}`,
		`{"version": "v", "merges": {"merged": 18446744073709551615}}`,
		`{"version": "v", "part": {"number": 2, "of": 1}}`,
		`{"version": "v", "part": {"number": 0, "of": 3}}`,
		`{"version": "v", "part": {"number": 1, "of": 70000}}`,
		`{"version": "v", "part": {"number": 1, "of": 2, "run_rows": -1}}`,
		`{"version": "v", "part": {"number": 1, "of": 2, "clock": {"before": {"offset_ms": 1e300}}}}`,
		`{"version": "v", "part": {"number": 1, "of": 2, "clock": {"after": {"offset_ms": 1, "bound_ms": -1}}}}`,
	} {
		dir := keepsRows(t)
		if err := os.WriteFile(filepath.Join(dir, RunFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if r, err := Open(dir); err == nil {
			r.Close()
			t.Errorf("%s was read", text)
		}
	}
	for _, gaps := range []string{strings.Repeat(`{"gap_ns": 5, "count": 9000000000000000}`+"\n", 2), `{"gap_ns": -1}`} { // more than 2^53
		dir := keepsRows(t)
		must(0, os.WriteFile(filepath.Join(dir, GapsFile), []byte(gaps), 0o644))
		if r, err := Open(dir); err == nil {
			r.Close()
			t.Errorf("%s was read", gaps)
		}
	}
}
