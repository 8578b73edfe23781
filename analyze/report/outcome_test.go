package report_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/analyze/slo"
	"moontide/trace/tracetest"
)

// outcomes returns runs with each outcome, the worst last.
func outcomes(t *testing.T) report.Runs {
	t.Helper()
	gate := func(text string) []slo.Gate {
		conditions, err := slo.ParseConditions(text)
		if err != nil {
			t.Fatal(err)
		}
		return []slo.Gate{{Condition: conditions[0]}}
	}
	result := func() *measure.Result { return sweepResult(10, 100, 1.5) }
	failed, invalid := result(), judged(result(), measure.Invalid, "the client\x1b[2J was <late>")
	runs := report.Runs{
		{Name: "pass", Info: whole, Result: result(), View: report.View{Gates: gate("request_throughput>1")}},
		{Name: "fail & co", Info: whole, Result: failed, View: report.View{Gates: gate("request_throughput>2")}},
		{Name: "invalid", Info: whole, Result: invalid, View: report.View{Gates: gate("request_throughput>2")}},
		{Name: "incomplete", Result: result(), View: report.View{Gates: gate("request_throughput>1")}},
	}
	for i := range runs {
		runs[i].Dir = fmt.Sprintf("runs/%d", i)
	}
	return runs
}

// The outcome of several runs is the worst, in the order of the exit statuses.
func TestOutcome(t *testing.T) {
	runs := outcomes(t)
	for i, want := range []string{"pass", "fail", "invalid", "incomplete"} {
		got := runs[:i+1].Outcome()
		if last := got.Runs[i]; got.Outcome != want || last.Outcome != want || last.Folder != runs[i].Dir || len(last.Gates) != 1 || last.Gates[0].Passed != (i == 0) {
			t.Errorf("after %s: %s, %+v", want, got.Outcome, last)
		}
	}
	var decoded report.OutcomeJSON
	if err := json.Unmarshal([]byte(written(t, runs.WriteOutcome)), &decoded); err != nil || decoded.Version != report.OutcomeVersion {
		t.Fatalf("version %d, %v", decoded.Version, err)
	}
	metrics := decoded.Runs[0].Metrics
	if v := metrics["request_throughput"]; v == nil || *v != 1.5 {
		t.Errorf("request throughput is %v", v)
	}
	if v, known := metrics["p99_ttft_from_schedule_ms"]; !known || v != nil {
		t.Errorf("a latency that was not measured is %v, %v", v, known)
	}
}

// Without requests, no run passes.
func TestOutcomeOfNoSuccess(t *testing.T) {
	if got := (report.Runs{{Info: whole, Result: &measure.Result{}}}).Outcome().Outcome; got != "incomplete" {
		t.Errorf("the outcome is %s", got)
	}
}

// JUnit XML has a case for each verdict and gate, and escapes text of the server.
func TestJUnit(t *testing.T) {
	tracetest.Golden(t, "testdata/outcome.xml", written(t, outcomes(t).JUnit))
	tracetest.Golden(t, "testdata/set_nothing.xml", written(t, sets(t)["nothing"].JUnit))
}
