package report_test

import (
	"os"
	"strings"
	"testing"

	"moontide/analyze"
	"moontide/analyze/cache"
	"moontide/analyze/report"
	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/stats"
	"moontide/trace/tracetest"
)

// A trace with the published statistics of Dynamo's synthetic trace is printed as
// they were published, line by line.
func TestPublishedDatagenBlock(t *testing.T) {
	want, err := os.ReadFile("testdata/published_datagen.txt")
	if err != nil {
		t.Fatal(err)
	}
	published := report.Trace{Name: "Mooncake-based Synthetic Trace", Analysis: &analyze.Analysis{
		Requests: 10_000,
		ISL:      stats.Sample{Count: 10_000, Mean: 39_186, Min: 12_801, Max: 109_459},
		OSL:      stats.Sample{Count: 10_000, Mean: 344, Min: 1, Max: 2_000},
		Prefix: &analyze.Prefix{
			Requests: 10_000, UniqueBlocks: 430_838, TotalBlocks: 770_934, BlockSize: block.Size{Tokens: 512, How: block.Given},
			Infinite: cache.Rates{Block: 0.441, Token: trace.Some(0.44)},
		},
		Declared: analyze.Context{Mean: trace.Some(22_400.0), UniqueMean: trace.Some(16_786.0), SharedRatio: trace.Some(0.572)},
	}}
	got, notes, _ := strings.Cut(written(t, report.Traces{published}.Datagen().WriteText), "max\n")
	if got += "max\n"; got != string(want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if notes != "\nContext: as the trace's generator declares it.\n" {
		t.Errorf("notes %q", notes)
	}
}

// The block of any trace has the same lines, and the notes that other forms have.
func TestDatagenBlock(t *testing.T) {
	bare := analyzed(t, []trace.Request{{Timestamp: trace.Some(0.0), InputLength: 100, OutputLength: 5}, {Timestamp: trace.Some(1.0), InputLength: 1100}})
	all := report.Traces{{Name: "full", Analysis: analyzed(t, fullTrace())}, {Name: "bare", Analysis: bare}}
	tracetest.Golden(t, "testdata/dataset_datagen.txt", written(t, all.Datagen().WriteText))
}
