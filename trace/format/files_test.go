package format_test

import (
	"bytes"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"

	"moontide/trace"
	"moontide/trace/format"
)

// TestPackedWekaFolder: compressed conversations read like uncompressed ones.
func TestPackedWekaFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"agent.json", "other.json"} {
		text := readFile(t, filepath.Join("testdata/weka", name))
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write(text)
		z.Close()
		write(t, dir, name+".gz", packed.String())
	}
	want, _ := collect(t, "testdata/weka", format.Options{})
	got, _ := collect(t, dir, format.Options{})
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestHeldIsLittle: the memory for a trace that is not in order of arrival does
// not grow with the ids of its requests.
func TestHeldIsLittle(t *testing.T) {
	const rows, ids = 300, 1000
	list := strings.Repeat("18446744073709551615,", ids-1) + "7"
	for name, text := range map[string]string{
		"dynamo": strings.Repeat(strings.NewReplacer("[7]", "["+list+"]", `"input_length":3`, `"input_length":16000`).Replace(dynamoRow), rows),
		"weka":   wekaOf(strings.Repeat(strings.NewReplacer("[1]", "["+list+"]", `"in": 100`, `"in": 64000`).Replace(wekaRequest)+",\n", rows-1) + wekaRequest),
	} {
		path := filepath.Join(t.TempDir(), "t.jsonl")
		write(t, filepath.Dir(path), "t.jsonl", text)
		heap := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := heap()
		r, err := format.Open(path, format.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		r.BlockSize() // reads all
		if held := heap() - before; held > 1<<19 || r.BlockSize() == 0 {
			t.Errorf("%s: %d bytes for %d requests of %d ids", name, held, rows, ids)
		}
		got, err := trace.Collect(r.Requests())
		if err != nil || len(got) != rows || len(got[0].HashIDs) != ids {
			t.Errorf("%s: %d rows, %v", name, len(got), err)
		}
	}
}
