package format_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"moontide/trace"
	"moontide/trace/format"
)

// fuzz passes arbitrary input to a reader. It must not panic, errors must name the
// place, and accepted rows must read back unchanged.
func fuzz(f *testing.F, as format.Format, seeds ...string) {
	for _, name := range seeds {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.HasPrefix(text, []byte{0x1f, 0x8b}) || bytes.HasPrefix(text, []byte{0x28, 0xb5}) {
			t.Skip("compressed: a matter of the decoders")
		}
		r, err := format.NewReader(bytes.NewReader(text), "t", format.Options{Format: as, SkipBadRows: true, Record: withKey.Record})
		if err != nil {
			var row *trace.RowError
			if !errors.As(err, &row) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		defer r.Close()
		var row, again trace.Request
		for {
			err := r.Read(&row)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(row.HashIDs) > len(text) {
				continue // derived from a length: too many to try often
			}
			line := format.AppendRow(nil, row)
			if err := format.ParseRow(line, &again); err != nil {
				t.Fatalf("%s\n%v", line, err)
			}
			if second := format.AppendRow(nil, again); !bytes.Equal(line, second) {
				t.Fatalf("%s\nis written again as\n%s", line, second)
			}
			if row.Timestamp.Value < 0 || row.Delay.Value < 0 || row.InputLength > trace.MaxLength || row.OutputLength > trace.MaxLength {
				t.Fatalf("%s", line)
			}
		}
		r.Notes()
	})
}

func FuzzAzure(f *testing.F)    { fuzz(f, format.Azure, "azure2023.csv", "azure2024.csv") }
func FuzzBurstGPT(f *testing.F) { fuzz(f, format.BurstGPT, "burstgpt.csv", "burstgpt3.csv") }
func FuzzVidur(f *testing.F)    { fuzz(f, format.Vidur, "vidur.csv", "vidurlengths.csv") }
func FuzzBailian(f *testing.F)  { fuzz(f, format.Bailian, "bailian.jsonl") }
func FuzzWeka(f *testing.F)     { fuzz(f, format.Weka, "weka/agent.json", "weka/other.json") }
func FuzzDynamo(f *testing.F)   { fuzz(f, format.Dynamo, "dynamo.jsonl") }
func FuzzAIPerf(f *testing.F)   { fuzz(f, format.AIPerf, "aiperf.jsonl") }
func FuzzShareGPT(f *testing.F) { fuzz(f, format.ShareGPT, "sharegpt.json") }
func FuzzTraceLab(f *testing.F) { fuzz(f, format.TraceLab, "tracelab.jsonl") }
func FuzzBatch(f *testing.F)    { fuzz(f, format.OpenAILog, "batch/input.jsonl", "batch/output.jsonl") }
func FuzzExchange(f *testing.F) { fuzz(f, format.OpenAILog, "exchange.jsonl") }
func FuzzLiteLLM(f *testing.F)  { fuzz(f, format.OpenAILog, "litellm.jsonl") }
func FuzzOTel(f *testing.F) {
	fuzz(f, format.OpenAILog, "otel.jsonl", "otelconsole.json", "otellogs.jsonl")
}

// FuzzDetected detects the format from content.
func FuzzDetected(f *testing.F) {
	fuzz(f, "", "azure2023.csv", "burstgpt3.csv", "vidur.csv", "bailian.jsonl", "weka/agent.json", "dynamo.jsonl", "aiperf.jsonl", "sharegpt.json", "tracelab.jsonl")
}
