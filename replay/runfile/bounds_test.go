package runfile

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"moontide/replay"
	"moontide/trace"
)

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
	dir := keepsRows(t)
	gaps := strings.Repeat(`{"gap_ns": 5, "count": 9000000000000000}`+"\n", 2)
	if err := os.WriteFile(filepath.Join(dir, GapsFile), []byte(gaps), 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err := Open(dir); err == nil {
		r.Close()
		t.Error("counts of gaps that sum to more than 2^53 were read")
	}
}
