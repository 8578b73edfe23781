package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// hashing runs the benchmarks of package record and tokenizer on one core.
func hashing(t *tools) (rows []row, err error) {
	speed := regexp.MustCompile(`(?m)^Benchmark(\S+) .*\s([0-9.]+) MB/s`)
	for _, pkg := range []string{"./trace/record", "./trace/tokenizer"} {
		out, err := exec.Command("go", "test", pkg, "-run", "^$", "-bench", "IDs|Append", "-count", "3", "-cpu", "1").CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
		best := map[string]float64{}
		var names []string
		for _, m := range speed.FindAllSubmatch(out, -1) {
			name := string(m[1])
			v, _ := strconv.ParseFloat(string(m[2]), 64)
			if _, ok := best[name]; !ok {
				names = append(names, name)
			}
			best[name] = max(best[name], v)
		}
		for _, name := range names {
			what, limit := "text, "+strings.TrimPrefix(name, "Append/file="), 20.0
			if strings.HasPrefix(name, "IDs") {
				what, limit = "token ids, "+strings.TrimPrefix(name, "IDs/"), 1000
			}
			rows = append(rows, row{what, fmt.Sprintf("%.0f MB/s", limit), fmt.Sprintf("%.0f MB/s", best[name]), best[name] < limit})
		}
	}
	return rows, nil
}
