package doc_test

import (
	"os"

	"moontide/analyze/report/doc"
)

func Example() {
	d := doc.New("CACHE REPORT", "Trace: conversation.jsonl")
	s := d.Section("Overview")
	s.Row("Total requests", doc.Int(12031), "", "")
	s.Row("Duration", doc.Fixed(3536.999, 3), "s", "58 min 57 s")
	s.Warn("2 rows are out of order.")
	d.WriteText(os.Stdout)
	// Output:
	// CACHE REPORT
	// ================================================================================
	// Trace: conversation.jsonl
	//
	// Overview
	// --------------------------------------------------------------------------------
	//   Total requests                           12,031
	//   Duration                              3,536.999 s      58 min 57 s
	//
	//   Warning: 2 rows are out of order.
}
