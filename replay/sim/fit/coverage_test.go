package fit_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"moontide/replay"
	"moontide/replay/bench"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
	"moontide/replay/sim/virtual"
)

// records collects those of a replay.
type records []replay.Record

func (r *records) Record(rec replay.Record) error {
	*r = append(*r, rec)
	return nil
}

// replayed measures a run on a deployment by a replay in virtual time.
func replayed(t testing.TB, d engine.Deployment, run bench.EngineRun) fit.Measurement {
	t.Helper()
	load := run.Trace()
	model, err := virtual.New(virtual.Config{Deployment: d, TraceBlockSize: load.BlockSize, Coarse: true})
	if err != nil {
		t.Fatal(err)
	}
	var all records
	runner := replay.VirtualRunner{Model: model, Recorder: &all, MaxConcurrency: run.MaxConcurrency, Closed: true}
	if _, err := runner.Run(t.Context(), load.Requests); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b replay.Record) int { return cmp.Compare(a.Row, b.Row) })
	m := fit.Measurement{Name: run.Name, Load: fit.Load{ISL: run.ISL, OSL: run.OSL, Concurrency: run.MaxConcurrency}}
	var ttft, e2el, tpot []float64
	tokens, end := 0, time.Duration(0)
	for _, rec := range all {
		n, _ := rec.OutputTokens()
		m.Load.Requests = append(m.Load.Requests, fit.Request{Input: rec.InputLength, Output: n})
		tokens, end = tokens+n, max(end, rec.Last.Value)
		ttft = append(ttft, milliseconds(rec.First.Value-rec.Sent.Value))
		e2el = append(e2el, milliseconds(rec.Last.Value-rec.Sent.Value))
		tpot = append(tpot, milliseconds(rec.Last.Value-rec.First.Value)/float64(max(n-1, 1)))
	}
	m.Values[fit.RequestThroughput], m.Values[fit.OutputThroughput] = float64(len(all))/end.Seconds(), float64(tokens)/end.Seconds()
	m.Values[fit.MeanTTFT], m.Values[fit.P99TTFT] = meanAndP99(ttft)
	m.Values[fit.MeanE2EL], m.Values[fit.P99E2EL] = meanAndP99(e2el)
	m.Values[fit.MeanTPOT], m.Values[fit.P99TPOT] = meanAndP99(tpot)
	return m
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func meanAndP99(sample []float64) (mean, p99 float64) {
	slices.Sort(sample)
	for _, x := range sample {
		mean += x / float64(len(sample))
	}
	at := 0.99 * float64(len(sample)-1)
	low := int(at)
	high := min(low+1, len(sample)-1)
	return mean, sample[low] + (at-float64(low))*(sample[high]-sample[low])
}

// disturb makes a run slower or faster by a random share of standard deviation noise,
// and each value a little by itself.
func disturb(m *fit.Measurement, noise float64, random *rand.Rand) {
	speed := noise * random.NormFloat64()
	for metric := range m.Values {
		effect := speed
		if fit.Metric(metric) <= fit.OutputThroughput {
			effect = -speed
		}
		m.Values[metric] *= math.Exp(effect + 0.3*noise*random.NormFloat64())
	}
	for _, metric := range []fit.Metric{fit.MeanE2EL, fit.MeanTTFT, fit.MeanTPOT} {
		m.Values[metric+1] = max(m.Values[metric+1], m.Values[metric])
	}
}

// randomDeployment returns a deployment with random costs.
func randomDeployment(random *rand.Rand, disaggregated bool) engine.Deployment {
	between := func(low, high engine.Cost) engine.Cost {
		return engine.Cost(float64(low) * math.Exp(random.Float64()*math.Log(float64(high)/float64(low))))
	}
	costs := engine.Costs{
		Step: between(4*engine.Millisecond, 40*engine.Millisecond), PrefillStep: between(3*engine.Millisecond, 60*engine.Millisecond),
		PrefillToken: between(15*engine.Microsecond, 200*engine.Microsecond), ContextToken: between(5*engine.Nanosecond, 100*engine.Nanosecond),
		Decode: engine.DecodeTable{{Sequences: 1}},
	}
	total := engine.Cost(0)
	for _, n := range []int{4, 16, 32, 64} {
		total += between(costs.Step/20, costs.Step/2)
		costs.Decode = append(costs.Decode, engine.BatchCost{Sequences: n, Cost: total})
	}
	d := engine.Deployment{Latency: between(3*engine.Millisecond, 60*engine.Millisecond).Duration(), Engine: engine.Config{MaxSeqs: 256, MaxBatchedTokens: 4096, Costs: costs}}
	if !disaggregated {
		return d
	}
	d.Prefill, d.Decode = 1+random.IntN(2), 1
	own := costs
	own.PrefillStep, own.PrefillToken = 0, 0
	d.DecodeEngine = &engine.Config{MaxSeqs: 1024, MaxBatchedTokens: 1 << 17, Costs: own}
	d.Engine.Costs = engine.Costs{Step: between(10*engine.Millisecond, 100*engine.Millisecond), PrefillToken: costs.PrefillToken}
	d.Transfer = engine.Transfer{
		Base: between(5*engine.Millisecond, 50*engine.Millisecond).Duration(), PerToken: between(5*engine.Microsecond, 100*engine.Microsecond),
		Sharing: engine.Sharings[1+random.IntN(3)], FirstTokenAfter: true,
	}
	return d
}

// trueValue returns the true value of an estimate.
func trueValue(t testing.TB, truth engine.Deployment, name string) engine.Cost {
	t.Helper()
	of := func(p engine.Parameter) any { return p.Field(&truth) }
	base, ofDecode := strings.CutPrefix(name, "decode-engine.")

	table := truth.Engine.Costs.Decode
	if ofDecode {
		of = func(p engine.Parameter) any { return p.OfEngine(truth.DecodeEngine) }
	}
	if truth.DecodeEngine != nil {
		table = truth.DecodeEngine.Costs.Decode
	}
	var sequences int
	if n, _ := fmt.Sscanf(base, "decode-table.%d", &sequences); n == 1 {
		return entryAt(table, sequences)
	}
	p, found := engine.FindParameter(base)
	if !found {
		t.Fatalf("no parameter %s", name)
	}
	switch field := of(p).(type) {
	case *engine.Cost:
		return *field
	case *time.Duration:
		return engine.CostOf(*field)
	}
	t.Fatalf("%s is not a time", name)
	return 0
}

// entryAt returns the cost of a table at a number of sequences.
func entryAt(table engine.DecodeTable, sequences int) engine.Cost {
	before := engine.BatchCost{}
	for _, e := range table {
		if e.Sequences >= sequences {
			share := float64(sequences-before.Sequences) / float64(e.Sequences-before.Sequences)
			return before.Cost + engine.Cost(share*float64(e.Cost-before.Cost))
		}
		before = e
	}
	return before.Cost
}

// The 95 % intervals of parameters that are called identified cover the truth of random
// engines, measured by the planned runs. With the variable set, 100 engines are fitted.
func TestIntervalsCoverTruth(t *testing.T) {
	if testing.Short() {
		t.Skip("fits for long")
	}
	engines := 6
	if os.Getenv("MOONTIDE_ALL_FITS") != "" {
		engines = 100
	}
	covered, identified, all := 0, map[bool]int{}, map[bool]int{}
	for i := range engines {
		random := rand.New(rand.NewPCG(uint64(i), 7))
		disaggregated := i%3 == 2
		d := randomDeployment(random, disaggregated)
		for _, e := range fitPlanned(t, d, random).Estimates {
			all[disaggregated]++
			if !e.Identified {
				continue
			}
			identified[disaggregated]++
			if want := trueValue(t, d, e.Name); want >= e.Low && want <= e.High {
				covered++
			} else {
				t.Logf("engine %d: %s is %v, estimated %v, from %v to %v", i, e.Name, want, e.Value, e.Low, e.High)
			}
		}
	}
	sum := identified[false] + identified[true]
	t.Logf("%d engines: intervals of %d of %d identified parameters cover the truth; identified are %d of %d parameters, of disaggregated engines %d of %d",
		engines, covered, sum, identified[false], all[false], identified[true], all[true])
	if float64(covered) < 0.9*float64(sum) {
		t.Errorf("%d of %d intervals cover the truth", covered, sum)
	}
	if 5*identified[false] < 3*all[false] || 5*identified[true] < 2*all[true] {
		t.Errorf("identified are %d of %d parameters, of disaggregated engines %d of %d", identified[false], all[false], identified[true], all[true])
	}
}

// fitPlanned fits the costs of a deployment to the runs that are planned for it,
// measured with noise.
func fitPlanned(t *testing.T, d engine.Deployment, random *rand.Rand) *fit.Result {
	t.Helper()
	runs, err := bench.PlanEngineRuns(bench.EngineProbe{}, bench.EngineLimits{ISL: 2048, Concurrency: 64, Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var all []fit.Measurement
	heldOut := []int{}
	for i, r := range runs[:len(runs)/2] { // one round is enough here
		r.OSL = min(r.OSL, 128)
		m := replayed(t, d, r)
		disturb(&m, 0.01, random)
		all = append(all, m)
		if r.HeldOut {
			heldOut = append(heldOut, i)
		}
	}
	template := d
	template.Engine.Costs, template.Latency, template.DecodeEngine = engine.Costs{}, 0, nil
	template.Transfer.Base, template.Transfer.PerToken = 0, 0
	r, err := fit.Fit(t.Context(), all, fit.Options{Template: template, HeldOut: heldOut, Seed: 1, KeepContradictory: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
