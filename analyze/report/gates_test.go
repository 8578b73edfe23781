package report_test

import (
	"encoding/json"
	"html"
	"strings"
	"testing"
	"time"

	"moontide/analyze/diff"
	"moontide/analyze/report"
	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/bench"
	"moontide/replay/runfile"
)

// gate parses a gate: a condition that must hold or, after "not ", must not.
func gate(t *testing.T, text string) run.Gate {
	t.Helper()
	text, forbidden := strings.CutPrefix(text, "not ")
	c, err := run.ParseCondition(text)
	if err != nil {
		t.Fatal(err)
	}
	return run.Gate{Condition: c, Forbidden: forbidden}
}

// unescaped reverses the escaping and wrapping of every form.
func unescaped(text string) string {
	text = strings.NewReplacer(`\u003c`, "<", `\_`, "_", `\*`, "*", "&lt;", "<").Replace(html.UnescapeString(text))
	return strings.Join(strings.Fields(text), " ")
}

// Every form of a report, a sweep and a comparison contains every gate with its
// result, value and margin.
func TestGatesAreInEveryForm(t *testing.T) {
	run1 := report.Run{Name: "one", Info: ended(4), Result: measured(t, ended(4), answers(4))}
	run1.View.Gates = []run.Gate{gate(t, "mean_ttft<2s"), gate(t, "not failed>=0"), gate(t, "not cached_share<1%"), gate(t, "p99_ttft<2s")}
	runs := report.Runs{run1}
	wants := []string{
		"pass mean_ttft_ms<2000 must hold: 101.50 ms, margin 1898.50 ms", "fail failed>=0 must not hold: 0, margin 0",
		"fail cached_share<1% must not hold: 0.00 %, margin -1.00 %", "fail p99_ttft_ms<2000 must hold: 102.97 ms, margin 1897.03 ms: too few requests for p99: 4, needs 500 (5 beyond it)",
	}
	both := report.Runs{run1, run1}
	sweep := report.SweepOf("", []bench.LegResult{leg("", 7, run1.Info, run1.Result)}, run1.View)
	slower := comparedRun(t, "runs/b", "http://a", 5*time.Millisecond, func([]replay.Record) {})
	c := report.Diff{Comparison: diff.Of([]*diff.Run{slower}, []*diff.Run{slower}, diff.Options{})}
	for _, g := range []run.Gate{gate(t, "mean_ttft<+5%"), gate(t, "mean_ttft_ms<1"), gate(t, "max_ttft_ms<1")} {
		d, _ := c.Find(g.Metric.Key)
		c.Judgements = append(c.Judgements, diff.Judge(g, d))
	}
	compared := []string{"pass mean_ttft_ms<+5% must hold: +0.00 %, margin 5.00 %", "fail mean_ttft_ms<1 must hold: 427.00 ms, margin -426.00 ms", "fail max_ttft_ms<1 must hold: not measured in B"}
	for name, tc := range map[string]struct {
		text  string
		wants []string
	}{
		"text":                {written(t, runs.Document().WriteText), wants},
		"several runs":        {written(t, both.Document().WriteText), wants},
		"markdown":            {written(t, runs.Document().WriteMarkdown), wants},
		"csv":                 {written(t, runs.Document().WriteCSV), wants},
		"html":                {written(t, runs.Document().WriteHTML), wants},
		"json":                {written(t, runs.JSON), wants},
		"vllm":                {written(t, runs.Block(report.VLLM).WriteText), wants},
		"sweep text":          {written(t, sweep.Document().WriteText), wants},
		"sweep markdown":      {written(t, sweep.Document().WriteMarkdown), wants},
		"sweep csv":           {written(t, sweep.Document().WriteCSV), wants},
		"comparison text":     {written(t, c.Document().WriteText), compared},
		"comparison markdown": {written(t, c.Document().WriteMarkdown), compared},
		"comparison csv":      {written(t, c.Document().WriteCSV), compared},
		"comparison html":     {written(t, c.Document().WriteHTML), compared},
		"comparison json":     {written(t, c.JSON), compared},
	} {
		text := unescaped(tc.text)
		for _, want := range tc.wants {
			word, rest, _ := strings.Cut(want, " ")
			if !strings.Contains(text, rest) {
				t.Errorf("%s: no %q in\n%s", name, rest, tc.text)
			}
			if !strings.Contains(strings.ToLower(text), word) {
				t.Errorf("%s: no %s", name, word)
			}
		}
		if strings.HasPrefix(name, "sweep") && !strings.Contains(text, "Concurrency 7: mean_ttft_ms<2000") {
			t.Errorf("%s does not name the run:\n%s", name, tc.text)
		}
		if !strings.HasSuffix(name, "json") && !strings.Contains(text, "Gates: FAIL") {
			t.Errorf("%s has no result of all gates:\n%s", name, tc.text)
		}
	}
}

// Without gates, no form mentions any.
func TestNoGates(t *testing.T) {
	runs := reported(t)
	for name, text := range map[string]string{
		"text": written(t, runs.Document().WriteText), "csv": written(t, runs.Document().WriteCSV),
		"html": written(t, runs.Document().WriteHTML),
	} {
		if strings.Contains(text, "Gates") || strings.Contains(text, "gates") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// A program reads the gates from the JSON.
func TestGatesInJSON(t *testing.T) {
	r := report.Run{Info: ended(4), Result: measured(t, ended(4), answers(4))}
	r.View.Gates = []run.Gate{gate(t, "not mean_ttft_ms>101"), gate(t, "cached_share<50%"), gate(t, "good_share>5%")}
	var got struct {
		Moontide struct {
			Gates []struct {
				Condition, Metric string
				MustHold          bool `json:"must_hold"`
				Passed            bool
				Limit             float64
				Value, Margin     *float64
			}
		}
	}
	if err := json.Unmarshal([]byte(written(t, report.Runs{r}.JSON)), &got); err != nil {
		t.Fatal(err)
	}
	all := got.Moontide.Gates
	if len(all) != 3 || all[0].Condition != "mean_ttft_ms>101" || all[0].MustHold || all[0].Passed || *all[0].Value != 101.5 || *all[0].Margin != -0.5 {
		t.Fatalf("%+v", all)
	}
	if all[1].Limit != 0.5 || !all[1].Passed || *all[1].Margin != 0.5 || all[2].Value != nil || all[2].Margin != nil || all[2].Passed {
		t.Errorf("%+v", all[1:])
	}
}

// A run whose end is missing passes no gate unless it is forced.
func TestIncompleteRunsPassNoGate(t *testing.T) {
	for name, change := range map[string]func(*runfile.Run){
		"killed":  func(r *runfile.Run) { r.Ended = time.Time{} },
		"stopped": func(r *runfile.Run) { r.Stopped = true },
		"failed":  func(r *runfile.Run) { r.Failure = "disk full" },
	} {
		r := report.Run{Info: changed(ended(4), change), Result: measured(t, ended(4), answers(4))}
		r.View.Gates = []run.Gate{gate(t, "failed<1%"), gate(t, "failed<1%")}
		r.View.Gates[1].Force = true
		if all := r.Judgements(); all[0].Passed || !strings.Contains(all[0].String(), "the run is incomplete") || !all[1].Passed {
			t.Errorf("%s: %v", name, all)
		}
	}
}
