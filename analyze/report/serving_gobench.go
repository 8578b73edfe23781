package report

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"moontide/analyze/run"
	"moontide/replay/runfile"
)

// GoBench writes the runs as lines of Go benchmarks, so that benchstat compares
// them: a file of several runs before a change, and one of several after it. A
// benchmark is called by what was replayed and under which limits, not by the
// run, so that the runs of one test are samples of one benchmark. Its iterations
// are the successful requests. A run that has none is left out, and so is what
// was not measured. Verdicts are in lines that benchstat does not read. The only
// errors are those of w.
func (runs ServingRuns) GoBench(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString("pkg: moontide\n")
	metrics := runs.metrics()
	for _, m := range metrics {
		if m.Better != run.Neither {
			fmt.Fprintf(&b, "Unit %s better=%s\n", m.Key, map[run.Direction]string{run.Lower: "lower", run.Higher: "higher"}[m.Better])
		}
	}
	for _, of := range runs {
		fmt.Fprintf(&b, "# %s: %s\n", orUnnamed(of.Name), of.Result.Verdict.Level)
		if of.Result.Completed == 0 {
			continue
		}
		fmt.Fprintf(&b, "Benchmark%s %d", benchmarkName(of.Run), of.Result.Completed)
		for _, m := range metrics {
			if x := m.Value(of.Result); x.Set {
				fmt.Fprintf(&b, " %s %s", strconv.FormatFloat(x.Value, 'f', -1, 64), m.Key)
			}
		}
		b.WriteString("\n")
	}
	return write(w, b.Bytes())
}

// benchmarkName tells tests apart. Its parts are as benchstat reads them.
func benchmarkName(run runfile.Run) string {
	name := "Serving/trace=" + benchmarkWord(run.Trace.Name)
	if speed := run.Trace.Speedup; speed > 0 && speed != 1 {
		name += "/speedup=" + strconv.FormatFloat(speed, 'f', -1, 64)
	}
	if n := run.Limits.MaxConcurrency; n > 0 {
		name += "/concurrency=" + strconv.Itoa(n)
	}
	return name
}

// benchmarkWord has nothing in it that ends a name or a part of one.
func benchmarkWord(s string) string {
	word := strings.Map(func(r rune) rune {
		if r == '/' || r == '=' || unicode.IsSpace(r) {
			return '_'
		}
		return r
	}, oneLine(s))
	if word == "" {
		return "none"
	}
	return word
}
