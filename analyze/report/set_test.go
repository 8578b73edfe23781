package report_test

import (
	"html"
	"slices"
	"strings"
	"testing"
	"time"

	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/analyze/slo"
	"moontide/replay"
	"moontide/replay/experiment"
	"moontide/replay/experiment/search"
	"moontide/replay/runfile"
	"moontide/replay/settings"
	"moontide/replay/sim/engine"
	"moontide/trace"
	"moontide/trace/stats"
	"moontide/trace/tracetest"
)

// sweepResult returns a run of n requests whose latencies are base, 2*base and
// so on to n*base, in milliseconds. TTFT is a tenth and TPOT a hundredth of the
// latency.
func sweepResult(n int, base, rate float64) *measure.Result {
	of := func(part float64) stats.Sample {
		var values []float64
		for i := range n {
			values = append(values, base*part*float64(i+1))
		}
		return stats.Of(values)
	}
	return &measure.Result{
		Completed: n, RequestRate: trace.Some(rate), OutputRate: trace.Some(150 * rate),
		E2EL: of(1), TTFT: of(0.1), TPOT: of(0.01),
	}
}

func judged(r *measure.Result, level measure.Level, texts ...string) *measure.Result {
	r.Verdict.Level = level
	r.Verdict.Evidence = []measure.Evidence{{Level: measure.Valid, Text: "nothing to see"}}
	for _, text := range texts {
		r.Verdict.Evidence = append(r.Verdict.Evidence, measure.Evidence{Level: level, Text: text})
	}
	return r
}

func failing(r *measure.Result) *measure.Result {
	r.Failed = 3
	r.Errors = map[replay.Class]int{replay.Timeout: 2, replay.Connect: 1}
	r.Examples = map[replay.Class]string{replay.Connect: "refused\x1b[2J"}
	return r
}

// whole is a run that ended.
var whole = runfile.Run{Outcome: runfile.Outcome{Ended: time.Unix(2, 0)}}

// trial returns a run at a concurrency.
func trial(label string, level float64, info runfile.Run, r *measure.Result) experiment.Trial {
	p := runfile.Point{Values: []runfile.Value{{Setting: "max-concurrency", Text: settings.FormatNumber(level)}}}
	if label != "" {
		p = p.With(runfile.Value{Setting: "url", Text: "http://" + label, Label: label})
	}
	return experiment.Trial{Point: p, Result: &experiment.Result{Run: info, Metrics: r}}
}

// comparedTrials has two deployments. In the second, one run is INVALID, some of its requests
// failed, and one run is missing.
func comparedTrials() []experiment.Trial {
	return []experiment.Trial{
		trial("base|line", 1, whole, sweepResult(10, 100, 1.5)), trial("base|line", 2, whole, sweepResult(20, 110, 2.75)), trial("base|line", 128, whole, sweepResult(1280, 10, 12345.678)),
		trial("new", 1, runfile.Run{Outcome: runfile.Outcome{Ended: time.Unix(2, 0), Notes: []string{"it\x1b[2J was cold"}}}, sweepResult(10, 50, 3)),
		trial("new", 2, whole, failing(judged(sweepResult(20, 220, 1.375), measure.Invalid, "client lag at p99 is 20.00 ms", "and more"))),
	}
}

func sweepOf(trials ...experiment.Trial) report.Set {
	return report.SweepOf("ISL 3000, OSL 150, model m", trials, report.View{})
}

const planObjectives = "p99_ttft<2s,not mean_tpot>=70ms"

func viewOf(t *testing.T, gates string) (v report.View) {
	t.Helper()
	for _, text := range strings.Split(gates, ",") {
		if gates != "" {
			v.Gates = append(v.Gates, gate(t, text))
		}
	}
	return v
}

// planOf returns a plan of deployments. TTFT is up to 6 s and TPOT up to 600 ms, divided by
// the number of engines.
func planOf(t *testing.T, gates string, candidates ...experiment.Candidate) report.Plan {
	t.Helper()
	p := report.Plan{Trace: "t.jsonl", Requests: 1200, View: viewOf(t, gates), Notes: []string{"it\x1bis short"}}
	for _, c := range candidates {
		result := sweepResult(1000, 60_000/1000/float64(c.Total()), 8)
		f := experiment.Forecast{Completed: 1000, State: engine.Stats{Admitted: 1000, Queued: 2e9}}
		for _, m := range report.PlanMetrics(p.View) {
			f.Values = append(f.Values, m.Value(result))
		}
		for _, g := range p.View.Gates {
			f.Judgements = append(f.Judgements, g.Judge(result))
		}
		f.Met = len(slo.Failed(f.Judgements)) == 0
		p.Predictions = append(p.Predictions, experiment.Prediction{Candidate: c, Forecast: f})
	}
	return p
}

func aggregated(engines int) experiment.Candidate {
	return experiment.Candidate{Deployment: engine.Deployment{Engines: engines, Routing: "prefix"}}
}

func disaggregated(prefill, decode int) experiment.Candidate {
	return experiment.Candidate{Deployment: engine.Deployment{Prefill: prefill, Decode: decode}}
}

// tablePlan has both families, held-out errors, warnings and an INVALID run.
func tablePlan(t *testing.T) report.Plan {
	p := planOf(t, planObjectives, aggregated(1), aggregated(2), aggregated(4), disaggregated(1, 1), disaggregated(2, 3))
	p.HeldOut = map[string]float64{"p99_ttft_ms": 0.152, "mean_tpot_ms": 0.021}
	first := &p.Predictions[0]
	first.Verdict = measure.Verdict{Level: measure.Invalid, Evidence: []measure.Evidence{{Level: measure.Invalid, Text: "100 of 1000 requests failed"}}}
	first.Met, first.Failed = false, 100
	for i := range p.Predictions {
		p.Predictions[i].Warnings = []string{"the prompts are long"}
	}
	p.Predictions[1].Warnings = append(p.Predictions[1].Warnings, "too many sequences")
	return p
}

// foundLoad is a search over loads 1 to 4; loads up to 2 meet the objectives.
func foundLoad(t *testing.T, label string) *experiment.Answer {
	f := &experiment.Answer{Point: trial(label, 1, whole, nil).Point, Setting: "max-concurrency", Answer: search.Answer{Level: 2, Found: true, Missed: 3, Limited: true, Complete: true}}
	for level := 4.0; level >= 1; level-- {
		l := trial(label, level, whole, sweepResult(1000, 6*level, 2))
		for _, g := range viewOf(t, planObjectives).Gates {
			l.Judgements = append(l.Judgements, g.Judge(l.Metrics))
		}
		f.Trials = append(f.Trials, l)
	}
	f.Trials[0].Growth = 0.5
	return f
}

func sets(t *testing.T) map[string]report.Set {
	nothing := foundLoad(t, "")
	nothing.Answer = search.Answer{Missed: 3, Limited: true}
	one := viewOf(t, planObjectives)
	return map[string]report.Set{
		"one": sweepOf(comparedTrials()[:3]...), "compared": sweepOf(comparedTrials()...),
		"empty":   report.SweepOf("nothing", []experiment.Trial{trial("", 0.5, whole, judged(&measure.Result{}, measure.Invalid, "no request succeeded"))}, report.View{}),
		"search":  report.SearchOf("model m", []*experiment.Answer{foundLoad(t, "")}, one),
		"several": report.SearchOf("model m", []*experiment.Answer{foundLoad(t, "a"), foundLoad(t, "b")}, one),
		"nothing": report.SearchOf("model m", []*experiment.Answer{nothing}, one),
		"plan":    report.PlanOf(tablePlan(t)), "plain": report.PlanOf(planOf(t, "", aggregated(1), aggregated(2))),
	}
}

func TestSets(t *testing.T) {
	all := sets(t)
	for _, name := range []string{"compared", "search", "plan"} {
		tracetest.Golden(t, "testdata/set_"+name+".txt", written(t, all[name].Document().WriteText))
	}
	// The published table has exactly these nine columns. Of 100, 200 .. 1000 ms, 550 is the
	// mean and 991 the 99th percentile. A ratio, and the change in percent, is relative to
	// the first deployment at the same level.
	for name, wants := range map[string][]string{
		"one": {
			"| Concurrency | Request Throughput (req/s) | Output Token Throughput (tok/s) | Mean E2E Latency (ms) | P99 E2E Latency (ms) | Mean TTFT (ms) | P99 TTFT (ms) | Mean TPOT (ms) | P99 TPOT (ms) |",
			"| 1 | 1.50 | 225.00 | 550.00 | 991.00 | 55.00 | 99.10 | 5.50 | 9.91 |",
		},
		"compared": {
			"| 1 | 1.50 | 225.00 | 550.00 | 991.00 | 55.00 | 99.10 | 5.50 | 9.91 |", "new, with the ratio to base|line",
			"| 1 | 3.00 (2.00x, +100.0 %) | 450.00 (2.00x, +100.0 %) | 275.00 (0.50x, -50.0 %) | 495.50 (0.50x, -50.0 %) | 27.50 (0.50x, -50.0 %)",
			"| 2* | 1.38 (0.50x, -50.0 %) | 206.25 (0.50x, -50.0 %) | 2310.00 (2.00x, +100.0 %) |",
			"Verdict: INVALID", "the worst of 5 runs", "* new, Concurrency 2: client lag at p99 is 20.00 ms; and more",
			"new, Concurrency 2: 3 of 23 requests failed: connect 1 (refused [2J), timeout 2.", "new, Concurrency 1: it [2J was cold.",
		},
		"several": {"a: the objectives are met at concurrency 2 and missed at concurrency 3. At concurrency 3, mean TPOT is 90.1 ms (mean_tpot_ms>=70 must not hold)."},
		"nothing": {"No load meets the objectives: not even concurrency 3 does.", "The search ended after 4 runs; more runs would narrow the interval.", "Gates: FAIL"},
		"plan": {
			"Simulated: these numbers come from simulated engines", "it is short.", "the prompts are long.", "2 engines: too many sequences.", "* 1 engine: 100 of 1000 requests failed",
			"2P+3D, the smallest: p99_ttft_ms<2000 must hold: 1188.01 ms, margin 811.99 ms, ±15 % by the held-out rows",
		},
		"plain": {"| Mean TPOT | 2 engines; 1 engine |"},
	} {
		got := strings.Join(strings.Fields(html.UnescapeString(strings.ReplaceAll(written(t, all[name].Document().WriteMarkdown), `\`, ""))), " ")
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", name, want, got)
			}
		}
	}
}

// CSV has a row for each run, with the same columns in all sets. JSON has all runs by what
// differs between them, and the answers of searches.
func TestSetForms(t *testing.T) {
	for _, name := range []string{"compared", "several", "nothing", "plan"} {
		tracetest.Golden(t, "testdata/set_"+name+".csv", written(t, sets(t)[name].Document().WriteCSV))
		tracetest.Golden(t, "testdata/set_"+name+".json", written(t, sets(t)[name].JSON))
	}
}

func TestRunLine(t *testing.T) {
	for want, r := range map[string]*measure.Result{
		"SUSPECT: 1.50 req/s, 225.00 tok/s, mean E2EL 550.00 ms, mean TTFT 55.00 ms, mean TPOT 5.50 ms, 3 failed: connect 1 (refused [2J), timeout 2": failing(judged(sweepResult(10, 100, 1.5), measure.Suspect)),
		"VALID: - req/s, - tok/s, mean E2EL - ms, mean TTFT - ms, mean TPOT - ms, 0 failed":                                                           {},
	} {
		if got := report.RunLine(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// No deployment on the front is beaten by another, and every other is.
func TestParetoFront(t *testing.T) {
	p := planOf(t, "", aggregated(1), aggregated(2), aggregated(3), disaggregated(1, 2), disaggregated(2, 2))
	throughput := slices.IndexFunc(report.PlanMetrics(p.View), func(m measure.Metric) bool { return m.Key == "output_throughput" })
	for i, tokens := range []float64{900, 2000, 1000, 1200, 400} {
		p.Predictions[i].Values[throughput].Value = tokens
	}
	// TTFT is inversely proportional to the engines; each has 900, 1000, 333, 400 and 100
	// tokens per second.
	d := report.PlanOf(p).Document()
	if got := written(t, d.WriteMarkdown); !strings.Contains(got, "| Mean TTFT | 2P+2D; 1P+2D; 2 engines |") {
		t.Errorf("the front is not in\n%s", got)
	}
	page := written(t, d.WriteHTML)
	for _, name := range []string{"2P+2D", "1P+2D", "2 engines", "1 engine", "3 engines"} {
		if n := strings.Count(page, name+": "); n < 2 {
			t.Errorf("%d tooltips of %s, want one in each figure", n, name)
		}
	}
}
