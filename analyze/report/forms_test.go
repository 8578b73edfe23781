package report_test

import (
	"html"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"moontide/analyze/diff"
	"moontide/analyze/report"
	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/runfile"
)

// Every form of a report, sweep and comparison has the verdict with its reason, the
// mark of a simulation, the pacing and the notes.
func TestEveryFormHasVerdictAndNotes(t *testing.T) {
	info := runfile.Run{
		Ended: time.Unix(2, 0), Rows: 40, Target: runfile.Target{Model: "m", Simulated: true},
		Limits: runfile.Limits{MaxConcurrency: 8}, Notes: []string{"the trace has a note of its own"},
	}
	records := answers(36)
	for range 4 {
		records = append(records, failure(replay.Server, "overloaded"))
	}
	for i := range records {
		records[i].Row = i
		records[i].Due = records[i].Ready - 20*time.Second
	}
	opts := run.Options{Virtual: true, MaxConcurrency: 8}
	each := func() iter.Seq2[replay.Record, error] {
		return func(yield func(replay.Record, error) bool) {
			for _, rec := range records {
				if !yield(rec, nil) {
					return
				}
			}
		}
	}
	result, err := run.Compute(each(), opts)
	if err != nil {
		t.Fatal(err)
	}
	side, err := diff.Read(diff.Source{Name: "runs/b", Run: info, Measure: opts, Records: each()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := comparedRun(t, "runs/a", "http://a", 0, func([]replay.Record) {})
	runs := report.Runs{{Name: "one", Info: info, Result: result}}
	sweep := sweepOf(leg("", 8, info, result), leg("", 9, whole, sweepResult(10, 100, 1.5)))
	compared := report.Diff{Comparison: diff.Of([]*diff.Run{server}, []*diff.Run{side}, diff.Options{}), NameA: "a", NameB: "b"}

	both := append(runs[:1:1], report.Run{Name: "two", Info: whole, Result: sweepResult(10, 100, 1.5)})
	for name, write := range map[string]func(io.Writer) error{
		"text": runs.Document().WriteText, "markdown": runs.Document().WriteMarkdown, "csv": runs.Document().WriteCSV,
		"html": runs.Document().WriteHTML, "json": runs.JSON, "vllm": runs.Block(report.VLLM).WriteText,
		"text of two": both.Document().WriteText, "markdown of two": both.Document().WriteMarkdown, "csv of two": both.Document().WriteCSV,
		"html of two": both.Document().WriteHTML, "json of two": both.JSON, "vllm of two": both.Block(report.VLLM).WriteText,
		"sweep text": sweep.Document().WriteText, "sweep markdown": sweep.Document().WriteMarkdown,
		"sweep csv": sweep.Document().WriteCSV, "sweep html": sweep.Document().WriteHTML,
		"comparison text": compared.Document().WriteText, "comparison markdown": compared.Document().WriteMarkdown,
		"comparison csv": compared.Document().WriteCSV, "comparison html": compared.Document().WriteHTML, "comparison json": compared.JSON,
	} {
		text := strings.Join(strings.Fields(strings.ReplaceAll(html.UnescapeString(written(t, write)), "\\", "")), " ")
		for _, want := range []string{
			"INVALID", "4 of 40 requests failed", "Simulated: ", "these numbers come from the embedded simulated endpoint, not from a model",
			"Pacing: ", "paced by a limit of 8 in flight", "the trace has a note of its own.",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q:\n%s", name, want, text[:min(len(text), 3000)])
			}
		}
	}
}
