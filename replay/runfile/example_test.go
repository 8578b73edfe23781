package runfile_test

import (
	"fmt"

	"moontide/replay/runfile"
)

// Read the records of a run's folder.
func Example() {
	folder, err := runfile.Open("../../traces/runs/prefix")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer folder.Close()
	requests, tokens := 0, 0
	for rec, err := range folder.Records() {
		if err != nil {
			fmt.Println(err)
			return
		}
		requests, tokens = requests+1, tokens+rec.Counts.Output.Value
	}
	fmt.Println(requests, "requests,", tokens, "tokens")
	// Output:
	// 153 requests, 26901 tokens
}
