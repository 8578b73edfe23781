package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"moontide/replay/bench"
	"moontide/replay/sim/engine"
	"moontide/trace"
	"moontide/trace/routing"
)

// task is a deployment, its requests and its objectives.
type task struct {
	name       string
	deployment engine.Deployment
	axis       bench.Axis
	isl, osl   lengths
	slo        string
	theory     float64 // the truth; 0 is that of a reference
	seed       uint64  // of the requests of the search
	minimum    int     // requests of a run of the search; 0 is the default
}

// lengths are log-normal with a median and a spread, or exponential.
type lengths struct {
	median, spread float64
	exponential    bool
}

func (l lengths) draw(random *rand.Rand) int {
	x := l.median * math.Exp(l.spread*random.NormFloat64())
	if l.exponential {
		x = l.median * random.ExpFloat64()
	}
	return min(max(1, int(math.Round(x))), 500_000)
}

// queues are deployments whose largest load follows from theory: one sequence at a time,
// a second of service on average, and a mean response time of at most 2, 3 or 5 seconds.
func queues() (tasks []task) {
	for _, limit := range []float64{2, 3, 5} {
		// M/M/1: the response time is 1/(1-rate).
		mm1 := task{name: fmt.Sprintf("M/M/1, mean E2EL < %g s", limit), axis: bench.Rate, theory: 1 - 1/limit}
		mm1.isl = lengths{median: 400, exponential: true}
		// M/D/1: it is 1 + rate/(2*(1-rate)).
		md1 := task{name: fmt.Sprintf("M/D/1, mean E2EL < %g s", limit), axis: bench.Rate, theory: 2 * (limit - 1) / (2*limit - 1)}
		md1.isl = lengths{median: 400}
		for i, t := range []task{mm1, md1} {
			t.seed = uint64(10*limit) + uint64(i)
			t.osl, t.slo, t.minimum = lengths{median: 1}, fmt.Sprintf("mean_e2el<%gs", limit), 20_000
			t.deployment = engine.Deployment{Engines: 1, Engine: engine.Config{MaxSeqs: 1, NoPrefixCache: true, Costs: engine.Costs{PrefillToken: 2500 * engine.Microsecond}}}
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// drawTask returns one of the random deployments.
func drawTask(seed uint64, number int) task {
	random := rand.New(rand.NewPCG(seed, uint64(number)))
	between := func(low, high float64) float64 { return low * math.Pow(high/low, random.Float64()) }
	d := engine.Default()
	d.Engines = 1 + random.IntN(6)
	d.Routing = []routing.Policy{routing.RoundRobin, routing.LeastLoaded}[random.IntN(2)]
	c := &d.Engine
	c.Costs.Step = engine.Cost(between(2, 30) * float64(engine.Millisecond))
	c.Costs.PrefillToken = engine.Cost(between(5, 100) * float64(engine.Microsecond))
	c.Costs.Sequence = engine.Cost(between(5, 200) * float64(engine.Microsecond))
	c.MaxSeqs = int(between(16, 512))
	c.MaxBatchedTokens = max(2048<<random.IntN(3), c.MaxSeqs)
	c.KVBlocks = int(between(20_000, 100_000))
	t := task{deployment: d, axis: bench.Rate, seed: random.Uint64()}
	t.isl = lengths{median: between(200, 4000), spread: random.Float64() * 0.8}
	t.osl = lengths{median: between(10, 60), spread: random.Float64() * 0.8}
	if number%4 == 0 {
		t.axis = bench.Concurrency
	}
	// Limits above what an idle engine takes.
	step := float64(c.Costs.Step) / float64(engine.Millisecond)
	prefill := t.isl.median * float64(c.Costs.PrefillToken) / float64(engine.Millisecond)
	ttft := (step + prefill*math.Exp(2.6*t.isl.spread)) * between(3, 12)
	tpot := step * between(2, 6)
	t.slo = []string{
		fmt.Sprintf("p99_ttft<%.0fms", ttft+20),
		fmt.Sprintf("p90_ttft<%.0fms,mean_tpot<%.0fms", ttft+20, tpot+prefill/5),
		fmt.Sprintf("mean_tpot<%.0fms", tpot+prefill/10),
	}[random.IntN(3)]
	t.name = fmt.Sprintf("%d: %d engines of %.1f ms, %.0f us a token, %d sequences; ISL %.0f, OSL %.0f", number, d.Engines, step,
		float64(c.Costs.PrefillToken)/float64(engine.Microsecond), c.MaxSeqs, t.isl.median, t.osl.median)
	return t
}

// requests returns the requests of a run. They share no prefixes and have no block ids.
func (t *task) requests(leg bench.Leg) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		random := rand.New(rand.NewPCG(uint64(leg.Draw), t.seed))
		at := 0.0
		for range leg.Prompts {
			r := trace.Request{Timestamp: trace.Some(at), InputLength: t.isl.draw(random), OutputLength: t.osl.draw(random)}
			if !yield(r, nil) {
				return
			}
			at += random.ExpFloat64() * 1000 / leg.Level
		}
	}
}
