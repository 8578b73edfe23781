package runfile_test

import (
	"fmt"

	"moontide/replay/runfile"
)

// Read the records of a run's folder.
func Example() {
	folder, err := runfile.Open("testdata/old_keys")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer folder.Close()
	for rec, err := range folder.Records() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("row %d: TTFT %v, %d tokens\n", rec.Row, rec.First.Value-rec.Sent.Value, rec.Counts.Output.Value)
	}
	// Output:
	// row 0: TTFT 13.6701ms, 4 tokens
	// row 1: TTFT 5.681967ms, 4 tokens
	// row 2: TTFT 6.122166ms, 3 tokens
}
