package report_test

import (
	"log"
	"os"

	"moontide/analyze"
	"moontide/analyze/report"
	"moontide/trace"
	"moontide/trace/check"
)

// Analyze a trace and write the report as a page.
func ExampleTrace() {
	requests := []trace.Request{
		{Timestamp: trace.Some(0.0), InputLength: 1000, OutputLength: 10, HashIDs: []uint64{1, 2}},
		{Timestamp: trace.Some(500.0), InputLength: 1024, OutputLength: 20, HashIDs: []uint64{1, 3}},
	}
	a, err := analyze.Trace(trace.FromSlice(requests), analyze.Options{BlockSize: 512})
	if err != nil {
		log.Fatal(err)
	}
	page, err := os.Create("report.html")
	if err != nil {
		log.Fatal(err)
	}
	defer page.Close()
	report.Trace{Name: "two requests", Analysis: a}.Document().WriteHTML(page)
}

func ExampleCheck() {
	found := &check.Report{Requests: 100}
	report.Check{Name: "conversation.jsonl", Report: found}.Document().WriteMarkdown(os.Stdout)
	// Output:
	// # Trace check
	//
	// Trace: conversation.jsonl
	//
	// ## Verdict
	//
	// No problems found: this trace can be replayed faithfully.
}
