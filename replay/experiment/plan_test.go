package experiment_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"moontide/analyze/measure"
	"moontide/analyze/slo"
	"moontide/replay"
	"moontide/replay/experiment"
	"moontide/replay/openai"
	"moontide/replay/runfile"
	"moontide/replay/settings"
	"moontide/replay/sim/engine"
	"moontide/trace"
)

// metrics returns the metrics with some keys.
func metrics(keys ...string) (all []measure.Metric) {
	for _, key := range keys {
		all = append(all, measure.MustMetric(key))
	}
	return all
}

func gatesFrom(t testing.TB, text string) (all []slo.Gate) {
	t.Helper()
	conditions, err := slo.ParseConditions(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range conditions {
		all = append(all, slo.Gate{Condition: c})
	}
	return all
}

func planner(t testing.TB, cfg experiment.PlanConfig) *experiment.Planner {
	t.Helper()
	p, err := experiment.NewPlanner(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func candidates(all ...engine.Deployment) (list []experiment.Candidate) {
	for _, d := range all {
		list = append(list, experiment.Candidate{Deployment: d})
	}
	return list
}

func aggregated(engines int) engine.Deployment {
	d := engine.Default()
	d.Engines = engines
	return d
}

const (
	agentTrace    = "../../traces/agent.jsonl"
	conversations = "../../traces/conversation.jsonl"
)

// A prediction has the metrics of a run of the same deployment with the same load.
func TestPredictionsAreRuns(t *testing.T) {
	t.Parallel()
	var points []experiment.Point
	for _, text := range []string{"engines 1", "engines 3 routing prefix", "engines 3 routing random", "prefill-engines 2 decode-engines 1", "max-num-seqs 8 num-gpu-blocks 2500"} {
		var p experiment.Point
		for words := strings.Fields(text); len(words) > 0; words = words[2:] {
			p = p.With(runfile.Value{Setting: words[0], Text: words[1]})
		}
		points = append(points, p)
	}
	window := runfile.Window{WarmupSeconds: 5, CooldownSeconds: 5}
	for name, cfg := range map[string]settings.Settings{
		"open loop":   {},
		"paced":       {Pacing: settings.Pacing{Limit: 60, Start: 5 * time.Second, Speedup: 3, Ramp: 10 * time.Second}, MaxConcurrency: 4},
		"drawn":       {Pacing: settings.Pacing{Rate: trace.Some(4.0)}, Seed: 7},
		"closed loop": {Closed: true, MaxConcurrency: 3, Window: window},
		"sessions":    {Closed: true, Sessions: replay.SessionLimits{Open: 2, Turns: 5}, Client: openai.Config{Answers: openai.LiveAnswers}, CacheGenerated: true},
		"spread":      {Pacing: settings.Pacing{SpreadGrid: true, End: 40 * time.Second}, Client: openai.Config{CancelAfter: 2 * time.Second}},
	} {
		for _, everyToken := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, every token %v", name, everyToken), func(t *testing.T) {
				t.Parallel()
				cfg := experiment.Config{Settings: cfg}
				cfg.Trace.Path = agentTrace
				shown := metrics("completed", "abandoned", "output_throughput", "mean_ttft_ms", "p99_ttft_ms", "p99_tpot_ms", "mean_e2el_ms", "mean_client_queue_time_ms", "cached_share", "achieved_rate", "max_concurrent_requests")
				if everyToken { // else the times of tokens are not simulated
					shown = append(shown, metrics("mean_itl_ms", "max_output_tokens_per_s", "p99_ttst_ms")...)
				}
				p := planner(t, experiment.PlanConfig{Run: cfg, Gates: gatesFrom(t, "p50_ttft<100ms,failed<1%"), Metrics: shown})
				deployments, err := experiment.Candidates(cfg, points)
				if err != nil {
					t.Fatal(err)
				}
				predicted, err := p.Predict(t.Context(), deployments)
				if err != nil {
					t.Fatal(err)
				}
				for i, d := range points {
					one := cfg
					one.Virtual = true
					for _, v := range d.Values {
						if err := one.Set(v.Setting, v.Text, ""); err != nil {
							t.Fatal(err)
						}
					}
					result, err := experiment.Run(t.Context(), one)
					if err != nil {
						t.Fatal(err)
					}
					got := predicted[i]
					for m, metric := range shown {
						if want := metric.Value(result.Metrics); got.Values[m] != want {
							t.Errorf("%v: %s is %v, in a run %v", d, metric.Key, got.Values[m], want)
						}
					}
					met := result.Metrics.Verdict.Level != measure.Invalid
					for g, gate := range gatesFrom(t, "p50_ttft<100ms,failed<1%") {
						want := gate.Judge(result.Metrics)
						if met = met && want.Passed; got.Judgements[g].String() != want.String() {
							t.Errorf("%v: %v, in a run %v", d, got.Judgements[g], want)
						}
					}
					if got.Met != met || got.Completed != result.Metrics.Completed || got.Failed != result.Metrics.Failed || got.State.Steps == 0 {
						t.Errorf("%v: %+v, want met %v", d, got.Forecast, met)
					}
				}
			})
		}
	}
}

func TestPlanErrors(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var wrong *settings.Error
	if _, err := experiment.NewPlanner(ctx, experiment.PlanConfig{}); !errors.As(err, &wrong) || !strings.Contains(wrong.Text, "needs a trace") {
		t.Errorf("without a trace: %v", err)
	}
	p := planner(t, experiment.PlanConfig{Run: experiment.Config{Requests: trace.FromSlice(rows(5, 0))}})
	bad := aggregated(2)
	bad.Engine.Costs.Step = -1
	if _, err := p.Predict(ctx, candidates(aggregated(1), bad)); !errors.As(err, &wrong) {
		t.Errorf("of an invalid deployment: %v", err)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := p.Predict(canceled, candidates(aggregated(1))); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
