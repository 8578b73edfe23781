package foreign_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"moontide/trace"
	"moontide/trace/foreign"
	"moontide/trace/tracetest"
)

// fixtures are small files of each format, with what is irregular in it, and
// the format as it is recognized.
var fixtures = map[string]foreign.Format{
	"azure2023.csv":    foreign.Azure,
	"azure2024.csv":    foreign.Azure,
	"burstgpt.csv":     foreign.BurstGPT,
	"burstgpt3.csv":    foreign.BurstGPT,
	"vidur.csv":        foreign.Vidur,
	"vidurlengths.csv": foreign.Vidur,
	"bailian.jsonl":    foreign.Bailian,
	"weka":             foreign.Weka,
	"dynamo.jsonl":     foreign.Dynamo,
	"aiperf.jsonl":     foreign.AIPerf,
	"sharegpt.json":    foreign.ShareGPT,
}

// native is what convert would write of a trace, and then its notes.
func native(t *testing.T, path string, opts foreign.Options) string {
	t.Helper()
	r, err := foreign.Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows, err := trace.Collect(r.Requests())
	if err != nil {
		t.Fatal(err)
	}
	return spelled(rows) + noted(r)
}

func spelled(rows []trace.Request) string {
	var b []byte
	for _, row := range rows {
		b = append(trace.AppendRow(b, row), '\n')
	}
	return string(b)
}

func noted(r *foreign.Reader) string {
	var b strings.Builder
	for _, note := range r.Notes() {
		fmt.Fprintf(&b, "# %s\n", note)
	}
	return b.String()
}

// TestFixtures compares all that is made of each fixture with the file beside
// it, which was checked by hand.
func TestFixtures(t *testing.T) {
	for name, format := range fixtures {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", name)
			r, err := foreign.Open(path, foreign.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			if r.Format() != format {
				t.Fatalf("recognized as %s", r.Format())
			}
			tracetest.Golden(t, filepath.Join("testdata", "want", name), native(t, path, foreign.Options{}))
		})
	}
	t.Run("recorded times", func(t *testing.T) {
		opts := foreign.Options{RecordedTimes: true}
		got := native(t, "testdata/weka", opts) + native(t, "testdata/dynamo.jsonl", opts)
		tracetest.Golden(t, "testdata/want/recorded", got)
	})
}

// TestWrittenRowsReadBack: what is written of a foreign trace is a native one
// of the same rows, which is written as the same bytes again.
func TestWrittenRowsReadBack(t *testing.T) {
	for name := range fixtures {
		t.Run(name, func(t *testing.T) {
			r, err := foreign.Open(filepath.Join("testdata", name), foreign.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			rows, err := trace.Collect(r.Requests())
			if err != nil || len(rows) == 0 {
				t.Fatal(len(rows), err)
			}
			text := spelled(rows)
			again, err := foreign.NewReader(strings.NewReader(text), "again", foreign.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if again.Format() != foreign.Mooncake {
				t.Errorf("recognized as %s", again.Format())
			}
			read, err := trace.Collect(again.Requests())
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(rows, read); d != "" {
				t.Error(d)
			}
			if !bytes.Equal([]byte(text), []byte(spelled(read))) {
				t.Error("it is written in another way")
			}
		})
	}
}
