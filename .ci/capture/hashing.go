package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
			what, limit := "text, "+strings.TrimPrefix(name, "Append/file="), 200.0
			if strings.HasPrefix(name, "IDs") {
				what, limit = "token ids, "+strings.TrimPrefix(name, "IDs/"), 1000
			}
			rows = append(rows, row{what, fmt.Sprintf("%.0f MB/s", limit), fmt.Sprintf("%.0f MB/s", best[name]), best[name] < limit})
		}
	}
	return rows, nil
}

// conversations measures the CPU time of encoding conversations that are sent again with
// each turn, with and without a memory of them.
func conversations(t *tools) (rows []row, err error) {
	program := filepath.Join(t.work, "tokenizer.test")
	if out, err := exec.Command("go", "test", "-c", "-o", program, "./trace/tokenizer").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	names := []string{"llama3"}
	for _, path := range filepath.SplitList(os.Getenv("MOONTIDE_TEXT")) {
		names = append(names, "real/text="+strings.TrimSuffix(filepath.Base(path), ".txt"))
	}
	for _, name := range names {
		var speeds [2]float64
		for i, with := range []string{"tokenizer", "memory"} {
			if speeds[i], err = cpuSpeed(program, fmt.Sprintf("Conversations/file=%s/with=%s$", name, with)); err != nil {
				return nil, err
			}
		}
		measured := fmt.Sprintf("%.0f MB/s (%.0f MB/s if all is encoded)", speeds[1], speeds[0])
		rows = append(rows, row{"text of conversations, " + name, "200 MB/s", measured, speeds[1] < 200})
	}
	return rows, nil
}

// cpuSpeed returns the bytes of a benchmark per CPU time, in MB/s: the median of three, without
// the time before it.
func cpuSpeed(program, benchmark string) (speed float64, err error) {
	const more = 30
	bytes := regexp.MustCompile(`\s([0-9.]+) ns/op\s+([0-9.]+) MB/s`)
	run := func(n int) (cpu, size float64, err error) {
		cmd := exec.Command(program, "-test.run", "^$", "-test.bench", benchmark, "-test.cpu", "1", "-test.benchtime", fmt.Sprint(n, "x"))
		cmd.Dir = "trace/tokenizer"
		out, err := cmd.CombinedOutput()
		found := bytes.FindSubmatch(out)
		if err != nil || found == nil {
			return 0, 0, fmt.Errorf("benchmark %s: %v: %s", benchmark, err, out)
		}
		ns, _ := strconv.ParseFloat(string(found[1]), 64)
		speed, _ := strconv.ParseFloat(string(found[2]), 64)
		state := cmd.ProcessState
		return (state.UserTime() + state.SystemTime()).Seconds(), ns * speed / 1e9, nil
	}
	var speeds []float64
	for range 3 {
		before, _, failed := run(1)
		after, size, err := run(1 + more)
		if err = cmp.Or(failed, err); err != nil {
			return 0, err
		}
		speeds = append(speeds, more*size/(after-before))
	}
	slices.Sort(speeds)
	return speeds[1], nil
}
