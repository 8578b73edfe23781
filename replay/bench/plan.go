package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"moontide/analyze/run"
	"moontide/replay/runfile"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/enginefile"
	"moontide/trace"
)

// PlanConfig configures a [Planner].
type PlanConfig struct {
	// Run is what all simulated runs have in common. Virtual is set, and Engines, Dir
	// and Resume are ignored.
	Run     Config
	Metrics []run.Metric // to predict
	Gates   []run.Gate   // objectives that a deployment should meet
	// Parallel is the number of runs simulated at once; 0 is one per CPU core.
	Parallel int
	// Each, if not nil, is called after each prediction, one call at a time.
	Each func(Prediction)
}

// Candidate is a deployment to predict.
type Candidate struct {
	engine.Deployment
	// Variant tells candidates apart that have the same number of engines, such as
	// "prefix routing".
	Variant string
}

// Total returns the number of engines.
func (c *Candidate) Total() int {
	if c.Disaggregated() {
		return c.Prefill + c.Decode
	}
	return max(c.Engines, 1)
}

// Name returns the number of engines and the variant: "4 engines, prefix routing", or
// "3P+2D, prefix routing" with 3 engines for prefill and 2 for decode.
func (c *Candidate) Name() string {
	name := "1 engine"
	switch n := c.Total(); {
	case c.Disaggregated():
		name = fmt.Sprintf("%dP+%dD", c.Prefill, c.Decode)
	case n > 1:
		name = fmt.Sprintf("%d engines", n)
	}
	if c.Variant != "" {
		name += ", " + c.Variant
	}
	return name
}

// Prediction is what a deployment would do with a load.
type Prediction struct {
	Candidate
	Load PlanLoad
	Forecast
	Warnings []string // why the prediction may be wrong
}

// PerEngine returns a throughput divided by the number of engines.
func (p *Prediction) PerEngine(throughput trace.Opt[float64]) trace.Opt[float64] {
	throughput.Value /= float64(p.Total())
	return throughput
}

// Forecast is the outcome of a simulated run.
type Forecast struct {
	Values     []trace.Opt[float64] // of the metrics of the [PlanConfig]
	Judgements []run.Judgement      // of its gates
	Met        bool                 // all gates passed and the run is not INVALID
	State      engine.Stats         // of all engines at the end
	Verdict    run.Verdict
	// Completed and Failed are numbers of requests.
	Completed, Failed int
	// OfferedRate and AchievedRate are requests per second, by due time and by send time.
	OfferedRate, AchievedRate trace.Opt[float64]
	PeakConcurrency           int // most requests in flight
}

// MeanQueue returns the mean time that a request waited in an engine's queue, in
// milliseconds.
func (f *Forecast) MeanQueue() trace.Opt[float64] {
	n := f.State.Admitted
	return trace.Opt[float64]{Value: ms(f.State.Queued) / float64(max(n, 1)), Set: n > 0}
}

// Planner predicts what deployments would do with the requests of a trace, by
// simulating them in memory. It is safe for concurrent use.
type Planner struct {
	cfg    PlanConfig
	in     *input // of rows in memory
	base   *workload
	coarse bool // without the times of tokens
	// lengths is the range of the trace's, 0 without an engine file.
	lengths enginefile.Range
}

// Notes returns remarks on the trace for a report.
func (p *Planner) Notes() []string { return p.in.notes }

// Trace returns the name of the trace and its number of requests.
func (p *Planner) Trace() (name string, requests int) { return p.in.Name, p.in.plan.Rows }

// ErrNoRate reports a trace without a request rate that could be scaled.
var ErrNoRate = errors.New("all requests arrive at the same time: there is no rate to scale")

// NewPlanner reads the trace. A [*ConfigError] reports an invalid configuration.
func NewPlanner(ctx context.Context, cfg PlanConfig) (*Planner, error) {
	cfg.Run.Virtual, cfg.Run.Dir, cfg.Run.Resume = true, "", false
	if cfg.Parallel <= 0 {
		cfg.Parallel = runtime.GOMAXPROCS(0)
	}
	if err := cfg.Run.check(); err != nil {
		return nil, err
	}
	in, err := await(ctx, func() (*input, error) { return readTrace(ctx, &cfg.Run) })
	if err != nil {
		return nil, err
	}
	p := &Planner{cfg: cfg}
	if p.in, err = await(ctx, func() (*input, error) { return in.inMemory() }); err != nil {
		return nil, err
	}
	p.base = &workload{cfg: &p.cfg.Run, in: p.in}
	p.coarse = !cfg.needsTokenTimes()
	if in.lengths != nil {
		p.lengths = in.lengths.fitted()
	}
	return p, nil
}

// needsTokenTimes reports whether runs have to be simulated token by token: for a metric,
// or to cut a window or an answer at a time.
func (c *PlanConfig) needsTokenTimes() bool {
	return c.Run.Window != (runfile.Window{}) || c.Run.Client.CancelAfter > 0 ||
		slices.ContainsFunc(c.Metrics, run.Metric.NeedsTokenTimes) ||
		slices.ContainsFunc(c.Gates, func(g run.Gate) bool { return g.Metric.NeedsTokenTimes() })
}

// Predict simulates the candidates with the load of the trace. It
// stops at the first failure.
func (p *Planner) Predict(ctx context.Context, candidates []Candidate) ([]Prediction, error) {
	predictions := make([]Prediction, len(candidates))
	var showing sync.Mutex
	err := p.inParallel(ctx, len(candidates), func(ctx context.Context, i int) (err error) {
		if predictions[i], err = p.predict(ctx, candidates[i], p.base); err == nil && p.cfg.Each != nil {
			showing.Lock()
			defer showing.Unlock()
			p.cfg.Each(predictions[i])
		}
		return err
	})
	return predictions, err
}

func (p *Planner) predict(ctx context.Context, c Candidate, w *workload) (Prediction, error) {
	result := Prediction{Candidate: c, Load: w.load}
	var err error
	if result.Forecast, err = p.simulate(ctx, c.Deployment, w); err != nil {
		return result, err
	}
	result.Warnings = p.outside(&result)
	return result, nil
}

// outside warns about a load that the engines were not fitted to, if there is a file of
// them.
func (p *Planner) outside(r *Prediction) (warnings []string) {
	file := p.cfg.Run.EngineFile
	if file == nil {
		return nil
	}
	running := enginefile.Range{}
	setRunning(&running, r.Deployment, r.PeakConcurrency)
	for _, load := range []enginefile.Range{p.lengths, running} {
		if text := outsideText(file, load); text != "" {
			warnings = append(warnings, text)
		}
	}
	return warnings
}

// RunConfig returns the configuration of a run of a prediction.
func (p *Planner) RunConfig(r *Prediction) Config {
	cfg := p.cfg.Run
	cfg.Engines = r.Deployment
	r.Load.apply(&cfg, &cfg.Pacing)
	return cfg
}

// inParallel calls f with 0 to n-1 until a call fails or ctx ends.
func (p *Planner) inParallel(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var working sync.WaitGroup
	var next atomic.Int64
	for range min(p.cfg.Parallel, n) {
		working.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := f(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	working.Wait()
	return context.Cause(ctx)
}
