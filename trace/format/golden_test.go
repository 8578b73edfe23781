package format_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"moontide/trace"
	"moontide/trace/format"
	"moontide/trace/log"
	"moontide/trace/tracetest"
)

// fixtures maps small files of each format, with its irregularities, to the
// detected format.
var fixtures = map[string]format.Format{
	"azure2023.csv":    format.Azure,
	"azure2024.csv":    format.Azure,
	"burstgpt.csv":     format.BurstGPT,
	"burstgpt3.csv":    format.BurstGPT,
	"vidur.csv":        format.Vidur,
	"vidurlengths.csv": format.Vidur,
	"bailian.jsonl":    format.Bailian,
	"weka":             format.Weka,
	"dynamo.jsonl":     format.Dynamo,

	// Rows in every form; conversations of one name; sub-agents that run in parallel, call
	// others and go on meanwhile, and times in whole seconds; a sub-agent called twice.
	"mooncake.jsonl":     format.Mooncake,
	"sharegptnames.json": format.ShareGPT,
	"wekaagents.json":    format.Weka,
	"dynamoagents.jsonl": format.Dynamo,
	"aiperf.jsonl":       format.AIPerf,
	"sharegpt.json":      format.ShareGPT,
	"tracelab.jsonl":     format.TraceLab,
	"bailian2.jsonl":     format.Bailian,
	"batch":              format.OpenAILog,
	"exchange.jsonl":     format.OpenAILog,
	"litellm.jsonl":      format.OpenAILog,
	"otel.jsonl":         format.OpenAILog,
	"otelconsole.json":   format.OpenAILog,
	"otellogs.jsonl":     format.OpenAILog,
}

// withKey reads request logs, too.
var withKey = format.Options{Record: func() (log.Config, error) { return log.Config{Key: log.Key{1}, BlockSize: 16}, nil }}

// native returns a trace as convert would write it, followed by its notes.
func native(t *testing.T, path string, opts format.Options) string {
	t.Helper()
	rows, r := collect(t, path, opts)
	return spelled(rows) + noted(r)
}

func spelled(rows []trace.Request) string {
	var b []byte
	for _, row := range rows {
		b = append(format.AppendRow(b, row), '\n')
	}
	return string(b)
}

func noted(r *format.Reader) string {
	var b strings.Builder
	for _, note := range r.Notes() {
		fmt.Fprintf(&b, "# %s\n", note)
	}
	return b.String()
}

// TestFixtures compares the conversion of each fixture with the golden file next
// to it, which was checked by hand. It is a native trace with the same rows, and writing
// it again gives the same bytes.
func TestFixtures(t *testing.T) {
	for name, want := range fixtures {
		t.Run(name, func(t *testing.T) {
			rows, r := collect(t, filepath.Join("testdata", name), withKey)
			if r.Format() != want || len(rows) == 0 {
				t.Fatalf("recognized as %s, %d rows", r.Format(), len(rows))
			}
			text := spelled(rows)
			tracetest.Golden(t, filepath.Join("testdata", "want", name), text+noted(r))
			read, again, err := readText(text, withKey)
			if err != nil || again.Format() != format.Mooncake {
				t.Fatal(again, err)
			}
			if d := cmp.Diff(rows, read); d != "" || spelled(read) != text {
				t.Errorf("it is written in another way: %s", d)
			}
		})
	}
	t.Run("recorded times", func(t *testing.T) {
		opts := format.Options{RecordedTimes: true}
		got := native(t, "testdata/weka", opts) + native(t, "testdata/dynamo.jsonl", opts) + native(t, "testdata/tracelab.jsonl", opts)
		tracetest.Golden(t, "testdata/want/recorded", got)
	})
}
