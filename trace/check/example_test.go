package check_test

import (
	"fmt"
	"strings"

	"moontide/trace/check"
	"moontide/trace/format"
)

func Example() {
	rows := `{"timestamp": 500, "input_length": 1024, "output_length": 80, "hash_ids": [1, 2]}
{"timestamp": 250, "input_length": 1024, "output_length": 80, "hash_ids": [1, 3]}
`
	r, err := format.NewReader(strings.NewReader(rows), "trace.jsonl", format.Options{SkipBadRows: true})
	if err != nil {
		panic(err)
	}
	report, err := check.Run(r, check.Options{})
	if err != nil {
		panic(err)
	}
	for _, f := range report.Findings {
		if f.Severity == check.Error {
			fmt.Println(f.Kind, f.Examples)
		}
	}
	fmt.Println("replayable:", report.Replayable())
	// Output:
	// time_backwards [{2 timestamp 250 after 500 on line 1}]
	// replayable: false
}
