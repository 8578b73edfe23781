package report_test

import (
	"encoding/json"
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
	r, err := diff.Read(diff.Source{Name: name, Run: info, Measure: measure.Options{Virtual: true}, Records: func(yield func(replay.Record, error) bool) {
		for _, rec := range records {
			if !yield(rec, nil) {
				return
			}
		}
	}})
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

func TestDifference(t *testing.T) {
	for name, c := range comparisons(t) {
		tracetest.Golden(t, "testdata/diff_"+strings.ReplaceAll(name, " ", "_")+".txt", written(t, c.Document().WriteText))
	}
	tracetest.Golden(t, "testdata/diff_slower.json", written(t, comparisons(t)["slower"].JSON))
}

// JSON and CSV have every difference.
func TestDiffForms(t *testing.T) {
	for name, c := range comparisons(t) {
		if rows := strings.Count(written(t, c.Document().WriteCSV), "\n"); rows != len(c.Differences)+1 {
			t.Errorf("%s: %d rows of CSV", name, rows)
		}
		var parsed struct {
			Differences []struct {
				Metric      string
				B           *float64
				Interval    *[2]float64
				Significant *bool
			}
		}
		if err := json.Unmarshal([]byte(written(t, c.JSON)), &parsed); err != nil || len(parsed.Differences) != len(c.Differences) {
			t.Fatalf("%s: %v", name, err)
		}
		for i, d := range c.Differences {
			got := parsed.Differences[i]
			if got.Metric != d.Metric.Key || (got.B == nil) == d.B.Set || got.B != nil && *got.B != d.B.Value ||
				(got.Interval == nil) == d.Interval.Set || got.Interval != nil && *got.Significant != d.Significant() {
				t.Errorf("%s: %+v, want %+v", name, got, d)
			}
		}
	}
}
