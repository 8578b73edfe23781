// Command search finds the largest load of random simulated deployments with
// bench.SearchLoad, compares each answer with a reference of long runs, and that of
// queues with theory, and writes README.md:
//
//	go run ./.ci/search > .ci/search/README.md   # ten minutes on two idle cores, or longer
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"moontide/analyze/run"
	"moontide/replay/bench"
	"moontide/replay/bench/search"
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

// result is the outcome of a task.
type result struct {
	task
	answer  search.Answer
	legs    int
	truth   reference
	limited string
}

func (r *result) off() float64 { return r.answer.Estimate/r.truth.Load - 1 }

// within reports whether the answer is within 3 % of the truth, or the same number of
// requests in flight.
func (r *result) within() bool {
	same := r.axis == bench.Concurrency && math.Floor(r.answer.Estimate) == math.Floor(r.truth.Load)
	return same || math.Abs(r.off()) <= 0.03
}

// covers reports whether the interval has the truth, within twice its error.
func (r *result) covers() bool {
	return r.answer.From <= r.truth.Load+2*r.truth.Error && r.truth.Load-2*r.truth.Error <= r.answer.To
}

func main() {
	deployments := flag.Int("deployments", 100, "number of random deployments")
	theory := flag.Bool("queues", true, "also search in queues whose largest load follows from theory")
	first := flag.Int("first", 1, "the first of the random deployments")
	limit := flag.Duration("for", time.Hour, "begin no deployment after this time")
	flag.Parse()
	end := time.Now().Add(*limit)
	var tasks []task
	if *theory {
		tasks = queues()
	}
	for seed := *first - 1; seed < *first-1+*deployments; seed++ {
		tasks = append(tasks, drawTask(rand.New(rand.NewPCG(uint64(seed), 3)), seed+1))
	}
	results := make([]result, len(tasks))
	var working sync.WaitGroup
	next := make(chan int)
	for range runtime.NumCPU() {
		working.Go(func() {
			for i := range next {
				r, err := tasks[i].solve()
				if err != nil {
					log.Printf("%s: %v", tasks[i].name, err)
					continue
				}
				results[i] = r
				log.Printf("%s: %s %s: %.4g (%.4g to %.4g), truth %.4g +- %.2f %%, off %+.1f %%, %d runs", r.name, r.axis, r.slo, r.answer.Estimate, r.answer.From, r.answer.To, r.truth.Load, 100*r.truth.Error/r.truth.Load, 100*r.off(), r.legs)
			}
		})
	}
	for i := range tasks {
		if time.Now().Before(end) {
			next <- i
		}
	}
	close(next)
	working.Wait()
	fmt.Print(page(slices.DeleteFunc(results, func(r result) bool { return r.legs == 0 })))
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

func drawTask(random *rand.Rand, number int) task {
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

// requests returns the requests of a run.
func (t *task) requests(leg bench.Leg) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		random := rand.New(rand.NewPCG(uint64(leg.Draw), t.seed))
		at, block := 0.0, uint64(1)
		for range leg.Prompts {
			r := trace.Request{Timestamp: trace.Some(at), InputLength: t.isl.draw(random), OutputLength: t.osl.draw(random)}
			for range (r.InputLength + 511) / 512 {
				r.HashIDs = append(r.HashIDs, block)
				block++
			}
			if !yield(r, nil) {
				return
			}
			at += random.ExpFloat64() * 1000 / leg.Level
		}
	}
}

func (t *task) solve() (r result, err error) {
	r.task = *t
	dir, err := os.MkdirTemp("", "search-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	conditions, err := run.ParseConditions(t.slo)
	if err != nil {
		return r, err
	}
	var gates []run.Gate
	for _, c := range conditions {
		gates = append(gates, run.Gate{Condition: c})
	}
	cfg := bench.LoadSearchConfig{
		SweepConfig: bench.SweepConfig{
			Sweep: bench.Sweep{Axis: t.axis, Targets: []bench.Target{{}}},
			Run:   bench.Config{Virtual: true, Engines: t.deployment}, Dir: filepath.Join(dir, "search"),
			Trace: func(leg bench.Leg) (bench.Trace, error) {
				return bench.Trace{Name: leg.Name, Requests: t.requests(leg), BlockSize: 512}, nil
			},
		},
		Gates: gates, MinRequests: t.minimum,
	}
	found, err := bench.SearchLoad(context.Background(), cfg)
	if err != nil {
		return r, err
	}
	r.answer, r.legs, r.truth = found.Answer, len(found.Legs), reference{Load: t.theory}
	if !found.Answer.Found || !found.Answer.Limited {
		return r, fmt.Errorf("no answer: %+v, %s", found.Answer, found.Stopped)
	}
	if at := found.At(found.Answer.Missed); at != nil {
		r.limited = at.Tightest.Gate.Condition.String()
	}
	if t.theory == 0 {
		r.truth, err = t.refer(r.answer.Estimate, gates)
	}
	return r, err
}

func page(all []result) string {
	var b strings.Builder
	queues := slices.DeleteFunc(slices.Clone(all), func(r result) bool { return r.theory == 0 })
	drawn := slices.DeleteFunc(slices.Clone(all), func(r result) bool { return r.theory > 0 })
	good, inside, most, legs, errors := 0, 0, 0, 0, 0.0
	for _, r := range drawn {
		if r.within() {
			good++
		}
		if r.covers() {
			inside++
		}
		most, legs, errors = max(most, r.legs), legs+r.legs, errors+r.truth.Error/r.truth.Load
	}
	n := float64(max(len(drawn), 1))
	fmt.Fprintf(&b, `# How well a search finds the largest load

`+"`moontide bench --find`"+` searches for the largest load that meets objectives. Here it searches in virtual time, where
the truth is known: of queues from theory, and of random deployments from a reference. For each of %d draws of %d requests,
that is the load at which they just meet the objectives, found to 0.3 %% with the same draw at all loads, without the first
and the last tenth of the requests. The truth is the mean, and has a standard error, which is %.2f %% on average. The program
in this folder draws the deployments, searches and writes this page:

`+"```bash\ngo run ./.ci/search > .ci/search/README.md\n```"+`

Of %d random deployments, %d answers are within 3 %% of the truth (or the same number of requests in flight), after %.1f runs
on average and at most %d. %d of the 95 %% confidence intervals cover the truth, within twice its standard error.

`, draws, longRun, 100*errors/n, len(drawn), good, float64(legs)/n, most, inside)
	b.WriteString("## Queues\n\n")
	table(&b, queues)
	b.WriteString("\n## Random deployments\n\n")
	table(&b, drawn)
	return b.String()
}

func table(b *strings.Builder, all []result) {
	b.WriteString("| system | objectives | limited by | found | 95 % interval | truth | its error | off | runs |\n| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range all {
		unit := " req/s"
		if r.axis == bench.Concurrency {
			unit = " in flight"
		}
		code := func(text string) string { return "`" + text + "`" }
		fmt.Fprintf(b, "| %s | %s | %s | %.3g%s | %.3g to %.3g | %.4g | %.1f %% | %+.1f %% | %d |\n", r.name, code(r.slo), code(r.limited),
			r.answer.Estimate, unit, r.answer.From, r.answer.To, r.truth.Load, 100*r.truth.Error/r.truth.Load, 100*r.off(), r.legs)
	}
}
