package format

import (
	"testing"

	"moontide/trace"
)

// BenchmarkParseRow parses native rows in the style of published traces.
func BenchmarkParseRow(b *testing.B) {
	many := trace.Request{Timestamp: trace.Some(3_529_100.0), InputLength: 60_000, OutputLength: 500}
	for id := range uint64(120) {
		many.HashIDs = append(many.HashIDs, 1_000_000+id*id%7+id)
	}
	runs := many
	runs.HashIDs = nil
	for id := range uint64(120) {
		runs.HashIDs = append(runs.HashIDs, 1_000_000+id)
	}
	for _, bench := range []struct {
		name string
		row  trace.Request
	}{
		{"few", trace.Request{Timestamp: trace.Some(3_529_100.25), InputLength: 3000, OutputLength: 50, HashIDs: []uint64{0, 1, 2, 1200, 51, 52}}},
		{"many", many},
		{"runs", runs},
		{"session", trace.Request{InputLength: 3000, OutputLength: 50, SessionID: "0a1b2c3d4e5f", Delay: trace.Some(1234.5)}},
	} {
		b.Run("row="+bench.name, func(b *testing.B) {
			line := AppendRow(nil, bench.row)
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			var r trace.Request
			for b.Loop() {
				if err := ParseRow(line, &r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
