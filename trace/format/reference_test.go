package format_test

import (
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"testing"

	"moontide/trace"
	"moontide/trace/format"
	"moontide/trace/stats"
	"moontide/trace/tracetest"
)

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
