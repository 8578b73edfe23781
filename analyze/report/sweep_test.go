package report_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"moontide/analyze/report"
	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/bench"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/stats"
	"moontide/trace/tracetest"
)

// sweepResult returns a run of n requests whose latencies are base, 2*base and
// so on to n*base, in milliseconds. TTFT is a tenth and TPOT a hundredth of the
// latency.
func sweepResult(n int, base, rate float64) *run.Result {
	of := func(part float64) stats.Sample {
		var values []float64
		for i := range n {
			values = append(values, base*part*float64(i+1))
		}
		return stats.Of(values)
	}
	return &run.Result{
		Completed: n, RequestRate: trace.Some(rate), OutputRate: trace.Some(150 * rate),
		E2EL: of(1), TTFT: of(0.1), TPOT: of(0.01),
	}
}

func judged(r *run.Result, level run.Level, texts ...string) *run.Result {
	r.Verdict.Level = level
	r.Verdict.Evidence = []run.Evidence{{Level: run.Valid, Text: "nothing to see"}}
	for _, text := range texts {
		r.Verdict.Evidence = append(r.Verdict.Evidence, run.Evidence{Level: level, Text: text})
	}
	return r
}

func failing(r *run.Result) *run.Result {
	r.Failed = 3
	r.Errors = map[replay.Class]int{replay.Timeout: 2, replay.Connect: 1}
	r.Examples = map[replay.Class]string{replay.Connect: "refused\x1b[2J"}
	return r
}

// whole is a run that ended.
var whole = runfile.Run{Ended: time.Unix(2, 0)}

// oneSweep has one deployment, comparedSweep two. In the second, one run is
// INVALID, some of its requests failed, and one run is missing.
func oneSweep() report.Sweep {
	return report.Sweep{
		Subject: "ISL 3000, OSL 150, model m",
		Axis:    bench.Concurrency,
		Deployments: []report.Deployment{{Points: []report.SweepPoint{
			{Level: "1", Info: whole, Result: sweepResult(10, 100, 1.5)},
			{Level: "2", Info: whole, Result: sweepResult(20, 110, 2.75)},
			{Level: "128", Info: whole, Result: sweepResult(1280, 10, 12345.678)},
		}}},
	}
}

func comparedSweep() report.Sweep {
	s := oneSweep()
	s.Deployments[0].Label = "base|line"
	s.Deployments = append(s.Deployments, report.Deployment{Label: "new", Points: []report.SweepPoint{
		{Level: "1", Info: runfile.Run{Ended: time.Unix(2, 0), Notes: []string{"it\x1b[2J was cold"}}, Result: sweepResult(10, 50, 3)},
		{Level: "2", Info: whole, Result: failing(judged(sweepResult(20, 220, 1.375), run.Invalid, "client lag at p99 is 20.00 ms", "and more"))},
	}})
	return s
}

func emptySweep() report.Sweep {
	return report.Sweep{Subject: "nothing", Axis: bench.Rate, Deployments: []report.Deployment{{Points: []report.SweepPoint{
		{Level: "0.5", Info: whole, Result: judged(&run.Result{}, run.Invalid, "no request succeeded")},
	}}}}
}

var sweeps = []struct {
	name  string
	sweep report.Sweep
}{{"one", oneSweep()}, {"compared", comparedSweep()}, {"empty", emptySweep()}}

func TestSweep(t *testing.T) {
	for _, test := range sweeps {
		tracetest.Golden(t, "testdata/sweep_"+test.name+".txt", written(t, test.sweep.Document().WriteText))
	}
	// The published table has exactly these nine columns. Of 100, 200 .. 1000 ms, 550 is the
	// mean and 991 the 99th percentile.
	got := written(t, oneSweep().Document().WriteMarkdown)
	for _, want := range []string{
		"| Concurrency | Request Throughput (req/s) | Output Token Throughput (tok/s) | Mean E2E Latency (ms) | P99 E2E Latency (ms) " +
			"| Mean TTFT (ms) | P99 TTFT (ms) | Mean TPOT (ms) | P99 TPOT (ms) |\n",
		"| 1 | 1.50 | 225.00 | 550.00 | 991.00 | 55.00 | 99.10 | 5.50 | 9.91 |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// A ratio, and the change in percent, is relative to the first deployment at the same level.
func TestSweepRatios(t *testing.T) {
	var b bytes.Buffer
	if err := comparedSweep().Document().WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`| 1 | base\|line | 1.50 | 225.00 | 550.00 | 991.00 | 55.00 | 99.10 | 5.50 | 9.91 |`,
		`| 1 | new | 3.00 (2.00x, +100.0 %) | 450.00 (2.00x, +100.0 %) | 275.00 (0.50x, -50.0 %) | 495.50 (0.50x, -50.0 %) | 27.50 (0.50x, -50.0 %) | 49.55 (0.50x, -50.0 %) | 2.75 (0.50x, -50.0 %) | 4.96 (0.50x, -50.0 %) |`,
		`| 2\* | new | 1.38 (0.50x, -50.0 %) | 206.25 (0.50x, -50.0 %) | 2310.00 (2.00x, +100.0 %) |`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	// A run without a counterpart is listed without a ratio.
	if side := b.String()[strings.Index(b.String(), "Side by side"):]; strings.Count(side, "| 128 |") != 1 {
		t.Errorf("the run at 128 is not once in\n%s", side)
	}
}

// A run that is not VALID is marked in every table; only the reasons are
// listed, once.
func TestSweepVerdict(t *testing.T) {
	var b bytes.Buffer
	if err := comparedSweep().Document().WriteText(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if n := len(regexp.MustCompile(`(?m)^ *2\*  `).FindAllString(text, -1)); n != 6 { // the tables have two and four parts
		t.Errorf("the run is marked %d times in\n%s", n, text)
	}
	for want, times := range map[string]int{
		"Verdict: INVALID invalid the worst of 5 runs":                                     1,
		"invalid * new, Concurrency 2: client lag at p99 is 20.00 ms; and more":            1,
		"new, Concurrency 2: 3 of 23 requests failed: connect 1 (refused [2J), timeout 2.": 1,
		"new, Concurrency 1: it [2J was cold.":                                             1,
		"nothing to see":                                                                   0,
	} {
		if got := strings.Count(strings.Join(strings.Fields(text), " "), want); got != times {
			t.Errorf("%q is there %d times in\n%s", want, got, text)
		}
	}
}

func TestSweepLine(t *testing.T) {
	for want, r := range map[string]*run.Result{
		"SUSPECT: 1.50 req/s, 225.00 tok/s, mean E2EL 550.00 ms, mean TTFT 55.00 ms, mean TPOT 5.50 ms, 3 failed: connect 1 (refused [2J), timeout 2": failing(judged(sweepResult(10, 100, 1.5), run.Suspect)),
		"VALID: - req/s, - tok/s, mean E2EL - ms, mean TTFT - ms, mean TPOT - ms, 0 failed":                                                           {},
	} {
		if got := report.SweepLine(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSweepCSV(t *testing.T) {
	var b bytes.Buffer
	if err := comparedSweep().Document().WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"new", "2", "1.375", "206.25", "2310", "4358.2", "231", "435.82", "23.1", "43.582", "20", "3", "INVALID"}
	got := rows[len(rows)-1][:len(rows[0])-1] // without notes
	for i, cell := range got[2:10] {          // means may differ in the last digit
		if len(cell) > 8 {
			got[i+2] = strings.TrimRight(fmt.Sprintf("%.4f", parse(t, cell)), "0")
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func parse(t *testing.T, number string) (x float64) {
	t.Helper()
	if _, err := fmt.Sscan(number, &x); err != nil {
		t.Fatal(err)
	}
	return x
}
