package fit

import (
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"moontide/replay/sim/engine"
)

// truth is an engine to measure: 5 ms a step, and a concave decode table.
var truth = engine.Deployment{
	Latency: 12 * time.Millisecond,
	Engine: engine.Config{
		MaxSeqs: 256, MaxBatchedTokens: 4096,
		Costs: engine.Costs{
			Step: 5 * engine.Millisecond, PrefillStep: 8 * engine.Millisecond, PrefillToken: 40 * engine.Microsecond, ContextToken: 30 * engine.Nanosecond,
			Decode: engine.DecodeTable{{Sequences: 1}, {Sequences: 4, Cost: 2 * engine.Millisecond}, {Sequences: 16, Cost: 5 * engine.Millisecond}},
		},
	},
}

// runs are loads that identify the parameters of a deployment: two shapes at each
// concurrency, and two concurrencies of each shape.
var runs = []Load{
	{ISL: 128, OSL: 64, Concurrency: 1}, {ISL: 3000, OSL: 64, Concurrency: 1}, {ISL: 200, OSL: 300, Concurrency: 4}, {ISL: 200, OSL: 300, Concurrency: 16},
	{ISL: 2500, OSL: 150, Concurrency: 16}, {ISL: 2000, OSL: 16, Concurrency: 8}, {ISL: 1000, OSL: 100, Concurrency: 4}, {ISL: 1000, OSL: 100, Concurrency: 12},
}

// measure measures loads on a deployment, each with few prompts.
func measure(t testing.TB, d engine.Deployment, loads ...Load) (all []Measurement) {
	t.Helper()
	for _, l := range loads {
		l.Prompts = 4 * l.Concurrency
		v, err := Simulate(d, l, 0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Measurement{Name: l.String(), Load: l, Values: v})
	}
	return all
}

// A fit to measurements without noise recovers the costs, predicts rows that are left out,
// and is the same again.
func TestFitRecoversTruth(t *testing.T) {
	template := engine.Deployment{Engine: engine.Config{MaxSeqs: 256, MaxBatchedTokens: 4096}}
	all := measure(t, truth, runs...)
	r, err := Fit(t.Context(), all, Options{Template: template})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]engine.Cost{
		"request-latency": engine.CostOf(truth.Latency), "step-base": truth.Engine.Costs.Step, "prefill-step": truth.Engine.Costs.PrefillStep,
		"prefill-per-token": truth.Engine.Costs.PrefillToken, "decode-table.4": 7 * engine.Millisecond, "decode-table.16": 10 * engine.Millisecond,
	} {
		i := slices.IndexFunc(r.Estimates, func(e Estimate) bool { return e.Name == name })
		if e := r.Estimates[i]; math.Abs(float64(e.Value)/float64(want)-1) > 0.1 || e.Low > e.Value || e.High < e.Value {
			t.Errorf("%s is %v, from %v to %v, want %v", name, e.Value, e.Low, e.High, want)
		}
	}
	for n, errors := range map[int][]Error{len(runs): r.Errors, 2 * len(runs): r.Fitted.HeldOut} {
		i := slices.IndexFunc(errors, func(e Error) bool { return e.Metric == MeanE2EL })
		if e := errors[i]; e.Predictions != n || e.Median > 0.03 {
			t.Errorf("%+v, want %d predictions", e, n)
		}
	}
	if r.Fitted.Fitted != len(runs) || r.Fitted.Excluded != 0 {
		t.Errorf("%+v", r.Fitted)
	}
	for _, e := range r.Estimates {
		if slices.Contains(r.Fitted.NotIdentified, e.Name) == e.Identified() {
			t.Errorf("%+v; not identified: %q", e, r.Fitted.NotIdentified)
		}
	}
	if want := (Range{Interval{128, 3000}, Interval{16, 300}, Interval{1, 16}, Interval{1, 16}}); r.Fitted.Range != want {
		t.Errorf("range %+v, want %+v", r.Fitted.Range, want)
	}
	if again, err := Fit(t.Context(), all, Options{Template: template}); err != nil || !reflect.DeepEqual(r, again) {
		t.Errorf("fitted again: %+v, %v", again, err)
	}
}

// Costs of prefill engines are refitted to two runs of another deployment; those of the
// decode engines are kept.
func TestRefit(t *testing.T) {
	other := truth
	other.Prefill, other.Decode = 2, 1
	other.DecodeEngine = &engine.Config{Costs: truth.Engine.Costs}
	other.Engine = engine.Config{MaxSeqs: 1, Costs: engine.Costs{Step: 30 * engine.Millisecond, PrefillToken: 90 * engine.Microsecond}}
	other.Transfer = engine.Transfer{Base: 5 * time.Millisecond, Sharing: engine.Independent, FirstTokenAfter: true}
	known := other.Clone()
	known.Engine.Costs = engine.Costs{Step: 20 * engine.Millisecond, PrefillToken: 60 * engine.Microsecond}
	r, err := Fit(t.Context(), measure(t, other, runs[0], runs[4]), Options{Template: known, Refit: true})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r.Deployment.DecodeEngine, known.DecodeEngine) || len(r.Estimates) != 5 {
		t.Errorf("refitted %+v; %+v", r.Estimates, r.Deployment)
	}
	want := measure(t, other, runs[5])[0]
	got, err := Simulate(r.Deployment, want.Load, 0)
	if err != nil || math.Abs(got[MeanTTFT]/want.Values[MeanTTFT]-1) > 0.1 {
		t.Errorf("TTFT %v, want %v, %v", got[MeanTTFT], want.Values[MeanTTFT], err)
	}
}

// A parameter that fits to fewer rows move by more than half is not identified.
func TestIdentified(t *testing.T) {
	for _, tt := range []struct {
		low, high engine.Cost
		want      bool
	}{{100, 100, true}, {70, 149, true}, {100, 151, false}, {66, 100, false}} {
		if got := (Estimate{Value: 100, Low: tt.low, High: tt.high}).Identified(); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

func TestFitRefuses(t *testing.T) {
	all := measure(t, truth, runs...)
	halved := slices.Clone(all)
	for i := range halved[:3] {
		halved[i].Values = maps.Clone(halved[i].Values)
		halved[i].Values[OutputThroughput] /= 2
	}
	var refused *RefusedError
	if _, err := Fit(t.Context(), halved, Options{}); !errors.As(err, &refused) || len(refused.Rows) != len(all) || !strings.Contains(err.Error(), "3 of 8 measurements") {
		t.Errorf("contradictory measurements: %v", err)
	}
	for _, tt := range []struct {
		measurements []Measurement
		options      Options
		want         string
	}{
		{nil, Options{}, "no measurements"},
		{all[2:3], Options{}, "too few measurements (1)"},
		{all, Options{Template: engine.Deployment{Engine: engine.Config{MaxModelLen: 100, MaxBatchedTokens: 4096}}}, "check the template's limits"},
	} {
		if _, err := Fit(t.Context(), tt.measurements, tt.options); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want an error with %q", err, tt.want)
		}
	}
}
