package experiment_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"moontide/analyze/measure"
	"moontide/replay/experiment"
	"moontide/replay/runfile"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
)

// knownEngine is the engine that the tests measure.
func knownEngine() engine.Deployment {
	d := engine.Default()
	d.Latency = 15 * time.Millisecond
	d.Engine.MaxSeqs, d.Engine.KVBlocks = 256, 50_000
	d.Engine.Costs = engine.Costs{
		Step: 12 * engine.Millisecond, PrefillStep: 8 * engine.Millisecond, PrefillToken: 60 * engine.Microsecond, ContextToken: 80 * engine.Nanosecond,
		Decode: engine.DecodeTable{{Sequences: 1}, {Sequences: 8, Cost: 3 * engine.Millisecond}, {Sequences: 32, Cost: 8 * engine.Millisecond}, {Sequences: 128, Cost: 20 * engine.Millisecond}},
	}
	return d
}

// setOf measures the known engine in virtual time.
func setOf(t *testing.T, s experiment.Set, limits experiment.EngineLimits) ([]experiment.EngineRun, []experiment.Trial) {
	t.Helper()
	runs, err := experiment.PlanEngineRuns(limits)
	if err != nil {
		t.Fatal(err)
	}
	s.Base.Virtual, s.Base.Engines = true, knownEngine()
	trials, err := experiment.MeasureEngines(t.Context(), s, runs)
	if err != nil {
		t.Fatal(err)
	}
	return runs, trials
}

// The runs of a plan identify the costs of the engine that they measure.
func TestEngineRunsIdentifiesCosts(t *testing.T) {
	planned, trials := setOf(t, experiment.Set{Dir: filepath.Join(t.TempDir(), "set")}, experiment.EngineLimits{ISL: 1024, Concurrency: 16})
	var measured []fit.Measurement
	for i, trial := range trials {
		m, err := experiment.ReadEngineRun(trial.Dir)
		if err != nil || m.Unfit != "" || m.Name != planned[i].Name || len(m.Load.Requests) != planned[i].Requests || m.Load.Concurrency != planned[i].Concurrency {
			t.Fatalf("%+v, %v", m, err)
		}
		measured = append(measured, m.Measurement)
	}
	truth := knownEngine()
	template := knownEngine()
	template.Latency, template.Engine.Costs = 0, engine.Costs{}
	result, err := fit.Fit(t.Context(), measured, fit.Options{Template: template})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]engine.Cost{
		"request-latency": engine.CostOf(truth.Latency), "step-base": truth.Engine.Costs.Step, "prefill-per-token": truth.Engine.Costs.PrefillToken,
	} {
		i := slices.IndexFunc(result.Estimates, func(e fit.Estimate) bool { return e.Name == name })
		if e := result.Estimates[i]; math.Abs(float64(e.Value)/float64(want)-1) > 0.1 || !e.Identified() {
			t.Errorf("%s: %v from %v to %v; it is %v", name, e.Value, e.Low, e.High, want)
		}
	}
	for _, e := range result.Fitted.HeldOut {
		if e.Metric != fit.P99TTFT && e.Median > 0.03 {
			t.Errorf("%v: held-out errors %+v", e.Metric, e)
		}
	}
}

// What a fit must not use is said with the reason.
func TestUnfitEngineRuns(t *testing.T) {
	_, trials := setOf(t, experiment.Set{Dir: filepath.Join(t.TempDir(), "set")}, experiment.EngineLimits{ISL: 256, Concurrency: 4})
	path := filepath.Join(trials[0].Dir, runfile.RunFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stopped := strings.Replace(string(text), `"stopped": false`, `"stopped": true`, 1)
	if err := os.WriteFile(path, []byte(stopped), 0o644); err != nil {
		t.Fatal(err)
	}
	if m, err := experiment.ReadEngineRun(trials[0].Dir); err != nil || m.Unfit != "the run is not complete" {
		t.Errorf("%+v, %v", m, err)
	}
	requests := filepath.Join(trials[1].Dir, runfile.RequestsFile)
	if text, err = os.ReadFile(requests); err != nil {
		t.Fatal(err)
	}
	warm := strings.ReplaceAll(string(text), `"cached_tokens": 0`, `"cached_tokens": 64`)
	if err := os.WriteFile(requests, []byte(warm), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := experiment.ReadEngineRun(trials[1].Dir)
	if err != nil || !strings.HasPrefix(m.Unfit, "warm cache: ") && !m.Invalid {
		t.Errorf("%+v, %v", m, err)
	}
	if m.Load.Requests[0].CachedInput != 64 {
		t.Errorf("cached tokens are not those of the record: %+v", m.Load.Requests[0])
	}
}

// A run that is INVALID is repeated once, in a folder of its own.
func TestEngineRunsRepeatsInvalidRuns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	times := map[string]int{}
	save := func(r *experiment.Result) error {
		name := strings.TrimSuffix(filepath.Base(r.Dir), "-attempt-2")
		verdict := "VALID"
		if times[name]++; name == "decode-2" && times[name] == 1 {
			r.Metrics.Verdict.Level, verdict = measure.Invalid, "INVALID"
		}
		return os.WriteFile(filepath.Join(r.Dir, runfile.SummaryFile), []byte(`{"completed": 1, "moontide": {"verdict": "`+verdict+`"}}`), 0o644)
	}
	_, trials := setOf(t, experiment.Set{Dir: dir, Save: save}, experiment.EngineLimits{ISL: 256, Concurrency: 4})
	for _, trial := range trials {
		want, folder := 1, trial.Name
		if trial.Name == "decode-2" {
			want, folder = 2, "decode-2-attempt-2"
		}
		if times[trial.Name] != want || trial.Dir != filepath.Join(dir, folder) {
			t.Errorf("%s: %d times, the last in %s", trial.Name, times[trial.Name], trial.Dir)
		}
	}
}
