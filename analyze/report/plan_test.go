package report_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"moontide/analyze/report"
	"moontide/analyze/run"
	"moontide/replay/bench"
	"moontide/replay/sim/engine"
	"moontide/trace"
	"moontide/trace/tracetest"
)

// planOf returns a plan of deployments. TTFT is up to 6 s and TPOT up to 600 ms, divided by
// the number of engines.
func planOf(t *testing.T, gates string, candidates ...bench.Candidate) report.Plan {
	t.Helper()
	view := report.View{}
	for _, text := range strings.Split(gates, ",") {
		if gates != "" {
			view.Gates = append(view.Gates, gate(t, text))
		}
	}
	p := report.Plan{Trace: "t.jsonl", Requests: 1200, Metrics: report.PlanMetrics(view), Gates: view.Gates, Notes: []string{"it\x1bis short"}}
	for _, c := range candidates {
		p.Predictions = append(p.Predictions, bench.Prediction{Candidate: c, Forecast: forecast(p, float64(c.Total()))})
	}
	return p
}

// forecast is what a number of engines does.
func forecast(p report.Plan, engines float64) (f bench.Forecast) {
	result := sweepResult(1000, 60_000/1000/engines, 8)
	f = bench.Forecast{Completed: 1000, OfferedRate: trace.Some(8.0), PeakConcurrency: 30, State: engine.Stats{Admitted: 1000, Queued: 2e9}, Met: true}
	for _, m := range p.Metrics {
		f.Values = append(f.Values, m.Value(result))
	}
	for _, g := range p.Gates {
		f.Judgements = append(f.Judgements, g.Judge(result))
	}
	f.Met = len(run.Failed(f.Judgements)) == 0
	return f
}

func aggregated(engines int, variant string) bench.Candidate {
	return bench.Candidate{Deployment: engine.Deployment{Engines: engines, Routing: "prefix"}, Variant: variant}
}

func disaggregated(prefill, decode int) bench.Candidate {
	return bench.Candidate{Deployment: engine.Deployment{Prefill: prefill, Decode: decode}}
}

const planObjectives = "p99_ttft<2s,not mean_tpot>=70ms"

// tablePlan has both families, held-out errors, warnings and an INVALID run.
func tablePlan(t *testing.T) report.Plan {
	p := planOf(t, planObjectives, aggregated(1, ""), aggregated(2, ""), aggregated(4, ""), disaggregated(1, 1), disaggregated(2, 3))
	p.HeldOut = map[string]float64{"p99_ttft_ms": 0.152, "mean_tpot_ms": 0.021}
	p.Predictions[0].Verdict = run.Verdict{Level: run.Invalid, Evidence: []run.Evidence{{Level: run.Invalid, Text: "100 of 1000 requests failed"}}}
	p.Predictions[0].Met, p.Predictions[0].Failed = false, 100
	for i := range p.Predictions {
		p.Predictions[i].Warnings = []string{"the prompts are long"}
	}
	p.Predictions[1].Warnings = append(p.Predictions[1].Warnings, "too many sequences")
	return p
}

func plans(t *testing.T) map[string]report.Plan {
	return map[string]report.Plan{"table": tablePlan(t), "plain": planOf(t, "", aggregated(1, ""), aggregated(2, ""))}
}

func TestPlan(t *testing.T) {
	p := tablePlan(t)
	tracetest.Golden(t, "testdata/plan_table.txt", written(t, p.Document().WriteText))
	tracetest.Golden(t, "testdata/plan_table.json", written(t, p.JSON))
}

// Every form has every warning, note, gate and answer, and no control character.
func TestPlanFormsAgree(t *testing.T) {
	for name, p := range plans(t) {
		wants := []string{"Simulated: these numbers come from simulated engines", "it is short."}
		if name == "table" {
			wants = append(wants, "Warning: the prompts are long.", "too many sequences.", "*1 engine: INVALID: 100 of 1000 requests failed.",
				"2P+3D, the smallest: p99_ttft_ms<2000 must hold: 1188.01 ms, margin 811.99 ms", "2P+3D, the smallest: mean_tpot_ms>=70 must not hold: 60.06 ms")
		}
		for form, text := range map[string]string{
			"text": written(t, p.Document().WriteText), "Markdown": written(t, p.Document().WriteMarkdown), "page": written(t, p.Document().WriteHTML), "CSV": written(t, p.Document().WriteCSV),
		} {
			plain := unescaped(text)
			for _, want := range wants {
				if !strings.Contains(plain, want) {
					t.Errorf("%s, %s: no %q in\n%s", name, form, want, text)
				}
			}
			if strings.ContainsRune(text, 0x1b) {
				t.Errorf("%s, %s has a control character", name, form)
			}
		}
	}
}

// No deployment on the front is beaten by another, and every other is.
func TestParetoFront(t *testing.T) {
	p := planOf(t, "", aggregated(1, ""), aggregated(2, ""), aggregated(3, ""), disaggregated(1, 2), disaggregated(2, 2))
	throughput := slices.IndexFunc(p.Metrics, func(m run.Metric) bool { return m.Key == "output_throughput" })
	for i, tokens := range []float64{900, 2000, 1000, 1200, 400} {
		p.Predictions[i].Values[throughput].Value = tokens
	}
	var got report.PlanJSON
	if err := json.Unmarshal([]byte(written(t, p.JSON)), &got); err != nil {
		t.Fatal(err)
	}
	// TTFT is in inverse proportion to the engines, of which each has 900, 1000, 333, 400
	// and 100 tokens per second.
	want := []string{"2P+2D", "1P+2D", "2 engines"}
	if front := got.Front["mean_ttft_ms"]; !slices.Equal(front, want) {
		t.Errorf("front %q, want %q", front, want)
	}
	page := written(t, p.Document().WriteHTML)
	for _, name := range []string{"2P+2D", "1P+2D", "2 engines", "1 engine", "3 engines"} {
		if n := len(regexp.MustCompile(`<title>[^<]*`+regexp.QuoteMeta(name)+`: `).FindAllString(page, -1)); n < 2 {
			t.Errorf("%d tooltips of %s, want one in each figure", n, name)
		}
	}
}

// Many warnings about single deployments are cut in documents, not in JSON.
func TestPlanWarnings(t *testing.T) {
	var candidates []bench.Candidate
	for n := range 12 {
		candidates = append(candidates, aggregated(n+1, ""))
	}
	p := planOf(t, "", candidates...)
	for i := range p.Predictions {
		p.Predictions[i].Warnings = []string{fmt.Sprintf("%d sequences are too many", i)}
	}
	text := written(t, p.Document().WriteText)
	if n := strings.Count(text, "are too many"); n != 5 || !strings.Contains(text, "7 more warnings like the last.") {
		t.Errorf("%d warnings in\n%s", n, text)
	}
	if n := strings.Count(written(t, p.JSON), "11 sequences are too many"); n != 1 {
		t.Errorf("the last warning is %d times in JSON", n)
	}
}
