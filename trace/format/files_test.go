package format_test

import (
	"bytes"
	"os"
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

// TestFileChanges: a file that changes between its two readings is an error.
func TestFileChanges(t *testing.T) {
	for name, text := range map[string]string{
		"weka":   wekaOf(wekaRequest + `, {"t": 2, "in": 1, "out": 1}`),
		"dynamo": dynamoRow + dynamoRow,
	} {
		for how, change := range map[string]func(path string) error{
			"another": func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("x"), len(text)), 0o644) },
			"shorter": func(path string) error { return os.Truncate(path, 1) },
		} {
			path := filepath.Join(t.TempDir(), "c.json")
			write(t, filepath.Dir(path), "c.json", text)
			r, err := format.Open(path, format.Options{SkipBadRows: true})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var row trace.Request
			if err := r.Read(&row); err != nil {
				t.Fatal(err)
			}
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"another": "the file changed while it was read", "shorter": "reading: EOF"}[how]
			if err := r.Read(&row); err == nil || !strings.Contains(err.Error(), path+":") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %s: %v", name, how, err)
			}
		}
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
