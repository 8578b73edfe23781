package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"moontide/analyze/report/doc"
	"moontide/analyze/run"
	"moontide/replay/runfile"
)

// GoBench writes the runs as Go benchmark lines for benchstat, with verdicts,
// notes and gates as comments. A name identifies the workload and its limits, so the runs of
// one test are samples of one benchmark; its iterations are the completed requests.
// Missing values are omitted.
func (runs Runs) GoBench(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString("pkg: moontide\n")
	metrics := runs.metrics()
	for _, m := range metrics {
		switch m.Better {
		case run.Lower:
			fmt.Fprintf(&b, "Unit %s better=lower\n", m.Key)
		case run.Higher:
			fmt.Fprintf(&b, "Unit %s better=higher\n", m.Key)
		}
	}
	for _, r := range runs {
		fmt.Fprintf(&b, "# %s: %s\n", doc.Clean(r.name()), r.Result.Verdict.Level)
		for _, reason := range r.Result.Verdict.Reasons() {
			if r.Result.Verdict.Level != run.Valid {
				fmt.Fprintf(&b, "# %s: %s\n", r.Result.Verdict.Level, doc.Clean(reason))
			}
		}
		for _, n := range r.notes() {
			fmt.Fprintf(&b, "# %s\n", n)
		}
		for _, j := range r.Judgements() {
			fmt.Fprintf(&b, "# gate: %s: %s\n", j.Word(), doc.Clean(j.String()))
		}
		if r.Result.Completed == 0 {
			continue
		}
		fmt.Fprintf(&b, "Benchmark%s %d", benchmarkName(r.Info), r.Result.Completed)
		for _, m := range metrics {
			if x := m.Value(r.Result); x.Set {
				fmt.Fprintf(&b, " %s %s", doc.Plain(x.Value), m.Key)
			}
		}
		b.WriteString("\n")
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	return nil
}

// benchmarkName names the test, in parts that benchstat can filter.
func benchmarkName(info runfile.Run) string {
	name := "Serving/trace=" + benchmarkWord(info.Trace.Name)
	if speed := info.Trace.Speedup; speed > 0 && speed != 1 {
		name += "/speedup=" + doc.Plain(speed)
	}
	if n := info.Limits.MaxConcurrency; n > 0 {
		name += "/concurrency=" + strconv.Itoa(n)
	}
	return name
}

func benchmarkWord(s string) string {
	return cmp.Or(strings.Map(func(r rune) rune {
		if r == '/' || r == '=' || unicode.IsSpace(r) {
			return '_'
		}
		return r
	}, doc.Clean(s)), "none")
}
