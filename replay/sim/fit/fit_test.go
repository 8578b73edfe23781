package fit

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
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
			Decode: engine.DecodeTable{{Sequences: 1}, {Sequences: 4, Cost: 2 * engine.Millisecond}, {Sequences: 16, Cost: 5 * engine.Millisecond}, {Sequences: 64, Cost: 9 * engine.Millisecond}},
		},
	},
}

// runs are loads that identify the parameters of a deployment.
var runs = []Load{
	{ISL: 128, OSL: 64, Concurrency: 1}, {ISL: 3000, OSL: 64, Concurrency: 1}, {ISL: 200, OSL: 300, Concurrency: 4}, {ISL: 200, OSL: 300, Concurrency: 16},
	{ISL: 200, OSL: 300, Concurrency: 64}, {ISL: 2500, OSL: 150, Concurrency: 64}, {ISL: 2000, OSL: 16, Concurrency: 32}, {ISL: 1500, OSL: 200, Concurrency: 16},
	{ISL: 1000, OSL: 100, Concurrency: 4}, {ISL: 600, OSL: 200, Concurrency: 64}, {ISL: 1000, OSL: 100, Concurrency: 32},
}

// measure measures runs on a deployment, with relative noise.
func measure(t testing.TB, d engine.Deployment, noise float64, seed uint64, loads ...Load) (all []Measurement) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	for _, l := range loads {
		v, _, err := Simulate(d, l, seed)
		if err != nil {
			t.Fatal(err)
		}
		v[P99E2EL], v[P99TTFT], v[P99TPOT] = max(v[P99E2EL], v[MeanE2EL]), max(v[P99TTFT], v[MeanTTFT]), max(v[P99TPOT], v[MeanTPOT])
		speed := math.Exp(noise * random.NormFloat64()) // of the whole run
		for m := range v {
			v[m] *= math.Exp(0.3 * noise * random.NormFloat64())
			if Metric(m) <= OutputThroughput {
				v[m] /= speed
			} else {
				v[m] *= speed
			}
		}
		for _, m := range []Metric{MeanE2EL, MeanTTFT, MeanTPOT} {
			v[m+1] = max(v[m+1], v[m])
		}
		all = append(all, Measurement{Name: "run", Load: l, Values: v})
	}
	return all
}

// A fit to measurements without noise recovers the costs, and predicts other loads.
func TestFitRecoversTruth(t *testing.T) {
	if testing.Short() {
		t.Skip("fits for long")
	}
	all := measure(t, truth, 0, 1, runs...)
	r, err := Fit(t.Context(), all, Options{Template: engine.Deployment{Engine: engine.Config{MaxSeqs: 256, MaxBatchedTokens: 4096}}, HeldOut: []int{8, 9, 10}, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	table := truth.Engine.Costs.Decode
	want := map[string]engine.Cost{
		"request-latency": engine.CostOf(truth.Latency), "step-base": truth.Engine.Costs.Step, "prefill-step": truth.Engine.Costs.PrefillStep,
		"prefill-per-token": truth.Engine.Costs.PrefillToken, "decode-per-context-token": truth.Engine.Costs.ContextToken,
		"decode-table.4": table[1].Cost, "decode-table.16": table[2].Cost, "decode-table.64": table[3].Cost,
		"decode-table.32": table[2].Cost + (table[3].Cost-table[2].Cost)/3,
	}
	for _, e := range r.Estimates {
		if w := want[e.Name]; e.Identified && math.Abs(float64(e.Value)/float64(w)-1) > 0.08 && (w < e.Low || w > e.High) {
			t.Errorf("%s is %v, from %v to %v, want %v", e.Name, e.Value, e.Low, e.High, w)
		}
		if e.Low > e.Value || e.High < e.Value || !e.Fitted {
			t.Errorf("%+v", e)
		}
	}
	if errors := ErrorsOf(r.Rows, HeldOut, OutputThroughput, MeanE2EL, MeanTTFT, MeanTPOT); len(errors) != 12 || errors[11] > 0.03 {
		t.Errorf("errors of held-out rows: %.3v", errors)
	}
	if want := (Range{Interval{128, 3000}, Interval{16, 300}, Interval{1, 64}, Interval{1, 64}}); r.Range != want {
		t.Errorf("range %+v, want %+v", r.Range, want)
	}
	if len(r.Parameters) != len(r.Estimates) || len(r.Covariance) != len(r.Estimates) {
		t.Errorf("%d estimates, %d parameters, %d rows of covariance", len(r.Estimates), len(r.Parameters), len(r.Covariance))
	}
}

func TestSameMeasurementsSameFit(t *testing.T) {
	all := measure(t, truth, 0.01, 1, runs[:6]...)
	fit := func() *Result {
		r, err := Fit(t.Context(), all, Options{Template: engine.Deployment{Engine: engine.Config{MaxBatchedTokens: 4096}}, HeldOut: []int{5}, Seed: 1, Starts: 2})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if a, b := fit(), fit(); !reflect.DeepEqual(a, b) {
		t.Errorf("%+v\n%+v", a.Estimates, b.Estimates)
	}
}

// Costs of prefill engines are refitted to two runs of another deployment; those of the
// decode engines are kept.
func TestRefit(t *testing.T) {
	if testing.Short() {
		t.Skip("fits for long")
	}
	other := truth
	other.Prefill, other.Decode = 2, 1
	other.DecodeEngine = &engine.Config{Costs: truth.Engine.Costs}
	other.Engine.Costs = engine.Costs{Step: 30 * engine.Millisecond, PrefillToken: 90 * engine.Microsecond}
	other.Transfer.Base = 5 * time.Millisecond
	known := other
	known.Engine.Costs = engine.Costs{Step: 20 * engine.Millisecond, PrefillToken: 60 * engine.Microsecond}
	r, err := Fit(t.Context(), measure(t, other, 0, 1, runs[1], runs[6], runs[5]), Options{Template: known, Refit: []string{"step-base", "prefill-per-token"}, HeldOut: []int{2}, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r.Deployment.DecodeEngine, known.DecodeEngine) || r.Deployment.Latency != known.Latency || len(r.Parameters) != 2 {
		t.Errorf("refitted %v; %+v", r.Parameters, r.Deployment)
	}
	if errors := ErrorsOf(r.Rows, HeldOut, OutputThroughput, MeanE2EL, MeanTTFT, MeanTPOT); errors[3] > 0.03 {
		t.Errorf("errors of the held-out row: %.3v", errors)
	}
}

// A parameter on which no measurement depends is not identified.
func TestNotIdentified(t *testing.T) {
	if testing.Short() {
		t.Skip("fits for long")
	}
	all := measure(t, truth, 0.005, 1, runs[0], Load{ISL: 128, OSL: 128, Concurrency: 1}, runs[2], Load{ISL: 128, OSL: 64, Concurrency: 4})
	r, err := Fit(t.Context(), all, Options{Template: engine.Deployment{Engine: engine.Config{MaxBatchedTokens: 4096}}, HeldOut: []int{}, Seed: 1, Starts: 1})
	if err != nil {
		t.Fatal(err)
	}
	identified := map[string]bool{}
	for _, e := range r.Estimates {
		identified[e.Name] = e.Identified
	}
	if !identified["step-base"] || identified["prefill-per-token"] && identified["prefill-step"] && identified["request-latency"] {
		t.Errorf("one prompt length identifies latency, prefill step and prefill token: %v", identified)
	}
}

func TestFitRefuses(t *testing.T) {
	all := measure(t, truth, 0, 1, runs...)
	halved := append([]Measurement(nil), all...)
	for i := range halved[:5] {
		halved[i].Values[OutputThroughput] /= 2
	}
	var refused *RefusedError
	if _, err := Fit(t.Context(), halved, Options{}); !errors.As(err, &refused) || len(refused.Rows) != len(all) || !strings.Contains(err.Error(), "5 of 11 measurements") {
		t.Errorf("contradictory measurements: %v", err)
	}
	for _, tt := range []struct {
		measurements []Measurement
		options      Options
		want         string
	}{
		{nil, Options{}, "no measurements"},
		{all[2:3], Options{HeldOut: []int{}}, "cannot give"},
		{all, Options{HeldOut: []int{11}}, "no measurement 11"},
		{all, Options{Refit: []string{"no-such-parameter"}}, "no parameter to fit"},
		{all, Options{HeldOut: []int{}, Template: engine.Deployment{Engine: engine.Config{MaxModelLen: 100, MaxBatchedTokens: 4096}}}, "check the template's limits"},
	} {
		if _, err := Fit(t.Context(), tt.measurements, tt.options); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want an error with %q", err, tt.want)
		}
	}
}

// The default rule fits rows that cover the range of loads.
func TestHoldOut(t *testing.T) {
	var all []Measurement
	for _, shape := range [][2]int{{3000, 150}, {1000, 1000}, {500, 1000}} {
		for c := 1; c <= 128; c *= 2 {
			all = append(all, Measurement{Load: Load{ISL: shape[0], OSL: shape[1], Concurrency: c}})
		}
	}
	f := &fitter{rows: Screen(all)}
	for i := range f.rows {
		f.rows[i].Findings, f.rows[i].Role = nil, Fitted
	}
	f.holdOut()
	concurrencies, lengths := map[int]bool{}, map[int]bool{}
	for _, m := range f.fitted() {
		concurrencies[m.Load.Concurrency], lengths[m.Load.ISL] = true, true
	}
	if n := len(f.fitted()); n != 8 || !concurrencies[1] || !concurrencies[128] || len(concurrencies) < 5 || len(lengths) != 3 {
		t.Errorf("%d rows fitted, at concurrencies %v and ISLs %v", n, concurrencies, lengths)
	}
}
