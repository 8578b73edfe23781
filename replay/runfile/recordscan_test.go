package runfile

import (
	"encoding/json"
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
	"moontide/trace/format"
)

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
	if err := WriteJSON(filepath.Join(dir, RunFile), Run{Ended: time.Unix(1, 0)}); err != nil {
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
