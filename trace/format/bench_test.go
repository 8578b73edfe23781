package format_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"moontide/trace"
	"moontide/trace/format"
)

// BenchmarkRead reads the fixtures of each format, repeated to about 4 MB, from
// memory.
func BenchmarkRead(b *testing.B) {
	for _, name := range []string{"azure2023.csv", "azure2024.csv", "burstgpt.csv", "burstgpt3.csv", "vidur.csv", "bailian.jsonl", "dynamo.jsonl", "aiperf.jsonl", "weka/agent.json", "sharegpt.json", "tracelab.jsonl", "litellm.jsonl"} {
		b.Run("file="+name, func(b *testing.B) {
			text := repeated(b, name, 4<<20)
			b.SetBytes(int64(len(text)))
			var row trace.Request
			rows := 0
			for b.Loop() {
				r, err := format.NewReader(bytes.NewReader(text), name, withKey)
				if err != nil {
					b.Fatal(err)
				}
				for rows = 0; ; rows++ {
					if err := r.Read(&row); err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(rows), "rows")
		})
	}
}

func repeated(b *testing.B, name string, size int) []byte {
	file, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		b.Fatal(err)
	}
	text := strings.TrimSpace(string(file))
	head, body := "", text
	switch {
	case strings.HasSuffix(name, ".csv"):
		head, body, _ = strings.Cut(text, "\n")
		lines := strings.Split(body, "\n")
		head, body = head+"\n", lines[len(lines)-1] // dates do not go back
	case name == "sharegpt.json":
		head, body = "[", strings.Trim(text, "[]")
	case name == "weka/agent.json": // a conversation of many turns
		head, body, _ = strings.Cut(text, `{"t"`)
		body, _, _ = strings.Cut(`{"t"`+body, "\n")
		body = strings.TrimRight(body, ", ")
		ids := make([]string, 300)
		for i := range ids {
			ids[i] = strconv.Itoa(i + 1)
		}
		body = strings.Replace(strings.Replace(body, "[1, 2]", "["+strings.Join(ids, ",")+"]", 1), `"in": 150`, `"in": 19200`, 1)
	}
	separator, tail := "\n", "\n"
	switch name {
	case "sharegpt.json":
		separator, tail = ",\n", "]"
	case "weka/agent.json":
		separator, tail = ",\n", "]}"
	}
	n := max(1, size/len(body))
	return []byte(head + strings.Repeat(body+separator, n-1) + body + tail)
}
