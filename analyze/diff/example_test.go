package diff_test

import (
	"fmt"

	"moontide/analyze/diff"
	"moontide/analyze/slo"
	"moontide/replay/runfile"
)

// open reads a run folder to compare the default metrics.
func open(dir string) *diff.Run {
	folder, err := runfile.Open(dir)
	if err != nil {
		panic(err)
	}
	defer folder.Close()
	r, err := diff.Read(diff.Source{Name: dir, Run: folder.Run, Records: folder.Records()})
	if err != nil {
		panic(err)
	}
	return r
}

// Compare two runs and check a gate.
func Example() {
	const dir = "../../traces/runs/prefix"
	c := diff.Of([]*diff.Run{open(dir)}, []*diff.Run{open(dir)}, diff.Options{})
	condition, err := slo.ParseCondition("mean_ttft_ms>+5%")
	if err != nil {
		panic(err)
	}
	gate := slo.Gate{Condition: condition, Forbidden: true}
	d, _ := c.Find(gate.Metric.Key)
	fmt.Printf("%s: %.2f -> %.2f ms\n", d.Metric.Key, d.A.Value, d.B.Value)
	fmt.Println(diff.Judge(gate, d).Passed)
	// Output:
	// mean_ttft_ms: 956.79 -> 956.79 ms
	// true
}
