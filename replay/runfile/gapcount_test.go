package runfile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"moontide/replay"
	"moontide/trace"
)

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
	folder, err := Create(dir, Run{Rows: 3, NoChunkTimes: true})
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
