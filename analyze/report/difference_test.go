package report_test

import (
	"strings"
	"testing"
	"time"

	"moontide/analyze/diff"
	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/analyze/slo"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/tracetest"
)

// comparedRun is a completed run of 640 answers, each delayed by later.
func comparedRun(t *testing.T, name string, url string, later time.Duration, change func(records []replay.Record)) *diff.Run {
	t.Helper()
	records := answers(640)
	for i := range records {
		r := &records[i]
		r.InputLength = 1000 * (1 + i%4)
		r.Counts.Input = trace.Some(r.InputLength)
		r.Counts.Cached = trace.Some(i % 3 * 400)
		shift := later * time.Duration(i%4)
		r.First.Value += shift
		r.Last.Value += shift
		r.Done += shift
	}
	change(records)
	info := runfile.Run{Outcome: runfile.Outcome{
		Ended: time.Unix(2, 0), Rows: 640, Schedule: "s", Target: runfile.Target{URL: url, Model: hostile},
		Trace: runfile.Source{Name: "t.jsonl", SHA256: "t", BlockSize: 512},
	}}
	r, err := diff.Read(diff.Source{Name: name, Run: info, Measure: measure.Options{Virtual: true}, Records: each(records)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// comparisons returns the test cases for all formats.
func comparisons(t *testing.T) map[string]report.Difference {
	same := func([]replay.Record) {}
	of := func(a, b []*diff.Run, gates ...string) report.Difference {
		c := report.Difference{Comparison: diff.Of(a, b, diff.Options{}), NameA: "old", NameB: "new " + hostile}
		for _, text := range gates {
			condition, err := slo.ParseCondition(text)
			if err != nil {
				t.Fatal(err)
			}
			d, _ := c.Find(condition.Metric.Key)
			c.Judgements = append(c.Judgements, diff.Judge(slo.Gate{Condition: condition, Forbidden: true}, d))
		}
		return c
	}
	a := comparedRun(t, "runs/a", "http://a", 0, same)
	b := comparedRun(t, "runs/b", "http://b/"+strings.Repeat("long/", 8), 5*time.Millisecond, func(records []replay.Record) {
		records[7].Class, records[9].Class = replay.Timeout, replay.Timeout
	})
	other := comparedRun(t, "runs/c", "http://a", time.Millisecond, func(records []replay.Record) { records[0].OutputLength = 99 })
	return map[string]report.Difference{
		"slower":    of([]*diff.Run{a}, []*diff.Run{b}, "mean_ttft_ms>+1%", "p99_tpot_ms>+5"),
		"itself":    of([]*diff.Run{a}, []*diff.Run{a}),
		"unpaired":  of([]*diff.Run{a}, []*diff.Run{other}),
		"many runs": of([]*diff.Run{a, a}, []*diff.Run{b, b, b}),
		"by runs":   of([]*diff.Run{a, a, b}, []*diff.Run{b, b, a}),
	}
}

// JSON and CSV have every difference.
func TestDifference(t *testing.T) {
	for name, c := range comparisons(t) {
		path := "testdata/diff_" + strings.ReplaceAll(name, " ", "_")
		tracetest.Golden(t, path+".txt", written(t, c.Document().WriteText))
		if name == "slower" || name == "by runs" || name == "unpaired" {
			tracetest.Golden(t, path+".csv", written(t, c.Document().WriteCSV))
			tracetest.Golden(t, path+".json", written(t, c.JSON))
		}
	}
}
