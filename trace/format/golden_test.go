package format_test

import (
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"moontide/trace"
	"moontide/trace/format"
	"moontide/trace/log"
	"moontide/trace/stats"
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

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// collect reads a file.
func collect(t *testing.T, path string, opts format.Options) ([]trace.Request, *format.Reader) {
	t.Helper()
	r, err := format.Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	rows, err := trace.Collect(r.Requests())
	if err != nil {
		t.Fatal(err)
	}
	return rows, r
}

// TestPublishedAzure compares the trace of 2023 with published statistics.
func TestPublishedAzure(t *testing.T) {
	rows, _ := collect(t, tracetest.Published(t, "AzureLLMInferenceTrace_conv.csv"), format.Options{})
	var isl, osl []float64
	for _, r := range rows {
		isl, osl = append(isl, float64(r.InputLength)), append(osl, float64(r.OutputLength))
	}
	if span := rows[len(rows)-1].Timestamp.Value; len(rows) != 19_366 || rows[0].Timestamp.Value != 0 || math.Abs(span-3_501_721.937) > 1e-6 {
		t.Errorf("%d rows over %v ms, from %v", len(rows), span, rows[0].Timestamp)
	}
	for _, tc := range []struct {
		name   string
		values []float64
		want   [5]float64 // mean, min, p50, p99, max
	}{
		{"ISL", isl, [5]float64{1154.70, 2, 1020, 4142, 14050}},
		{"OSL", osl, [5]float64{211.13, 7, 129, 601, 1000}},
	} {
		d := stats.Of(tc.values)
		got := [5]float64{math.Round(d.Mean*100) / 100, d.Min, d.Quantile(0.5), math.Round(d.Quantile(0.99)), d.Max}
		if got != tc.want {
			t.Errorf("%s is %v, want %v", tc.name, got, tc.want)
		}
	}
}

// TestPublishedConversions: published traces are converted to the bytes that were once
// compared with the files, value by value, as the standard library reads them.
func TestPublishedConversions(t *testing.T) {
	for name, want := range map[string]string{
		"AzureLLMInferenceTrace_conv.csv":  "19366 rows, blocks of 0, 15f18979495333e5ce1160e6066daa73",
		"dynamo_mooncake_tiny.jsonl":       "16 rows, blocks of 0, a3f74a57f7bfd98301eb0eb57f4b5ac0",
		"dynamo_pi_request_trace.jsonl.gz": "17 rows, blocks of 16, 14881b93c101cbc5344a86a162f4159d",
		"weka":                             "6 rows, blocks of 64, 9beff8ba87f47aebf6171534a7c65eb8",
	} {
		t.Run(name, func(t *testing.T) {
			rows, r := collect(t, tracetest.Published(t, name), format.Options{})
			got := fmt.Sprintf("%d rows, blocks of %d, %.16x", len(rows), r.BlockSize(), sha256.Sum256([]byte(spelled(rows))))
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}
