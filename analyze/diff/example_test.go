package diff_test

import (
	"fmt"

	"moontide/analyze/diff"
	"moontide/replay/runfile"
)

// open reads a run folder to compare the default metrics.
func open(dir string) *diff.Run {
	folder, err := runfile.Open(dir)
	if err != nil {
		panic(err)
	}
	defer folder.Close()
	r, err := diff.Read(diff.Source{Name: dir, Run: folder.Run, Records: folder.Records()}, nil)
	if err != nil {
		panic(err)
	}
	return r
}

// Compare two runs and check a gate.
func Example() {
	const dir = "../../replay/runfile/testdata/old_keys"
	c := diff.Of([]*diff.Run{open(dir)}, []*diff.Run{open(dir)}, diff.Options{})
	gate, err := diff.ParseGate("p99_ttft_ms>+5%")
	if err != nil {
		panic(err)
	}
	d, _ := c.Find(gate.Metric.Key)
	fmt.Printf("%s: %.2f -> %.2f ms\n", d.Metric.Key, d.A.Value, d.B.Value)
	fmt.Println("failed:", gate.Judge(d).Failed)
	// Output:
	// p99_ttft_ms: 13.52 -> 13.52 ms
	// failed: false
}
