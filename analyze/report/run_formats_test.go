package report_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/analyze/slo"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/tracetest"
)

func written(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// inDetail measures records with everything that a report can show.
func inDetail(t *testing.T, records []replay.Record) *measure.Result {
	t.Helper()
	objectives, err := slo.ParseObjectives("ttft:101,tpot:25,e2el:1000")
	if err != nil {
		t.Fatal(err)
	}
	r, err := measure.Compute(each(records), measure.Options{BlockSize: 512, Detail: true, Objectives: objectives})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func each(records []replay.Record) func(func(replay.Record, error) bool) {
	return func(yield func(replay.Record, error) bool) {
		for _, rec := range records {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// reported returns two runs: one of four answers, and one in which half of the
// requests failed.
func reported(t *testing.T) report.Runs {
	t.Helper()
	view := report.View{Latencies: []measure.Latency{measure.TTFT, measure.TTST, measure.ITL}, Percentiles: []float64{1, 50, 99.9}}
	info := changed(ended(4), func(r *runfile.Run) {
		r.Trace.Name, r.Settings.MaxConcurrency, r.Settings.Pacing.Speedup = "a b/c=d.jsonl", 8, 2
	})
	failed := append(answers(2), failure(replay.Server, hostile), failure(replay.Timeout, "no end after 1s"))
	return report.Runs{
		{Name: "one", Info: info, Result: inDetail(t, answers(4)), View: view},
		{Name: hostile, Info: info, Result: inDetail(t, failed), View: view},
	}
}

func TestRunFormats(t *testing.T) {
	runs := reported(t)
	for name, write := range map[string]func(io.Writer) error{
		"text.txt":   runs.Document().WriteText,
		"series.csv": func(w io.Writer) error { return report.Series(runs[1].Result.Detail.Series).WriteCSV(w) },
		"aiperf.jsonl": func(w io.Writer) error {
			failed := failure(replay.Canceled, hostile)
			failed.Row, failed.SessionID, failed.Status = 7, "s", 499
			unsent := replay.Record{Class: replay.Connect}
			records := append(answers(1), failed, unsent, uncounted(answers(1))[0])
			records[3].SessionID = "s"
			return report.AIPerf(w, ended(4), each(append(records, reasoned(answers(4))...)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := written(t, write)
			tracetest.Golden(t, "testdata/report_"+name, text)
			if err := write(fullDisk{}); err == nil {
				t.Error("a full disk is no error")
			}
		})
	}
}

// Tables and summary contain the same numbers.
func TestTablesAgreeWithTheSummary(t *testing.T) {
	runs := reported(t)
	rows, err := csv.NewReader(strings.NewReader(written(t, runs.Document().WriteCSV))).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatal(rows, err)
	}
	var summaries []map[string]any
	if err := json.Unmarshal([]byte(written(t, runs.JSON)), &summaries); err != nil || len(summaries) != 2 {
		t.Fatal(summaries, err)
	}
	for i, summary := range summaries {
		own := summary["moontide"].(map[string]any)
		compared := 0
		for k, key := range rows[0] {
			value, there := summary[key]
			if !there {
				value, there = own[key]
			}
			if number, isNumber := value.(float64); there && isNumber {
				compared++
				if got, err := strconv.ParseFloat(rows[i+1][k], 64); err != nil || got != number {
					t.Errorf("run %d: %s is %s, in the summary %v", i, key, rows[i+1][k], number)
				}
			}
		}
		if compared < 25 {
			t.Errorf("run %d: %d of %d columns are in the summary", i, compared, len(rows[0]))
		}
		goodput := own["goodput"].(map[string]any)
		if goodput["requests"] != 4.0 || goodput["good"] != 2.0 || goodput["share"] != 0.5 || len(goodput["objectives"].([]any)) != 3 {
			t.Errorf("run %d: goodput %v", i, goodput)
		}
	}
	one := map[string]any{}
	if err := json.Unmarshal([]byte(written(t, runs[:1].JSON)), &one); err != nil || one["completed"] != 4.0 || one["p99.9_ttft_ms"] == nil {
		t.Errorf("%v, %v", err, one)
	}
}

// foreign is a run with hostile names and settings.
func foreign() runfile.Run {
	info := ended(2)
	info.Trace.Name, info.Target.Model, info.Command = "<script>alert(1)</script>", `"><img src=x onerror=alert(2)>`, []string{"</title><script>alert(3)</script>"}
	info.Notes, info.Target.URL, info.Settings.Salt = []string{"<b>bold</b>"}, "javascript:alert(4)", "{{.}}"
	return info
}

func page(t *testing.T) string {
	records := append(answers(4), failure(replay.Class("<i>"), "<script>alert(5)</script>"))
	for i := range records {
		records[i].SessionID = "s"
	}
	return written(t, report.Runs{{Name: "<u>run</u>", Info: foreign(), Result: inDetail(t, records)}}.Document().WriteHTML)
}

// The page of a long run has a bounded size and contains the slowest request.
func TestRunPageIsBounded(t *testing.T) {
	var records []replay.Record
	for i := range 60_000 {
		rec := answers(1)[0]
		later := time.Duration(i) * 7 * time.Millisecond
		rec.Row, rec.InputLength, rec.HashIDs = i, 1024, []uint64{1, uint64(i + 2)}
		rec.Due, rec.Ready, rec.Done = rec.Due+later, rec.Ready+later, rec.Done+later
		wait := time.Duration(i*7919%100_003) * time.Microsecond
		if i == 31_234 {
			wait = 90 * time.Second
		}
		rec.Sent, rec.First, rec.Last = trace.Some(rec.Sent.Value+later), trace.Some(rec.First.Value+later+wait), trace.Some(rec.Last.Value+later+wait)
		rec.Done += wait
		records = append(records, rec)
	}
	text := written(t, report.Runs{{Info: ended(len(records)), Result: inDetail(t, records)}}.Document().WriteHTML)
	if len(text) > 1<<20 {
		t.Errorf("%d bytes", len(text))
	}
	// The axes of TTFT must reach 90.1 s.
	if reached := regexp.MustCompile(`>(80 s|90 s|100 s|1\.5 min)<`).FindAllString(text, -1); len(reached) < 2 {
		t.Errorf("%d axes reach the slowest", len(reached))
	}
}
