package report

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

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
	figures := runs.figures()
	for _, f := range figures {
		if way := better(f.key); way != "" {
			fmt.Fprintf(&b, "Unit %s better=%s\n", f.key, way)
		}
	}
	for _, run := range runs {
		fmt.Fprintf(&b, "# %s: %s\n", orUnnamed(run.Name), run.Result.Verdict.Level)
		if run.Result.Completed == 0 {
			continue
		}
		fmt.Fprintf(&b, "Benchmark%s %d", benchmarkName(run.Run), run.Result.Completed)
		for _, f := range figures {
			if x := f.value(run.Result); x.Set {
				fmt.Fprintf(&b, " %s %s", strconv.FormatFloat(x.Value, 'f', -1, 64), f.key)
			}
		}
		b.WriteString("\n")
	}
	return write(w, b.Bytes())
}

// better is which way a figure should go, "" where neither is better.
func better(key string) string {
	switch {
	case strings.HasSuffix(key, "_ms") || key == "failed":
		return "lower"
	case strings.HasSuffix(key, "throughput"), strings.Contains(key, "good"), key == "completed", key == "cached_tokens":
		return "higher"
	}
	return ""
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
