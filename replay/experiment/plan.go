package experiment

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"moontide/analyze/measure"
	"moontide/analyze/slo"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
	"moontide/replay/sim/virtual"
	"moontide/trace"
)

// PlanConfig configures a [Planner].
type PlanConfig struct {
	// Run configures all simulated runs. Virtual is set; Engines, Dir and Resume are
	// ignored.
	Run     Config
	Metrics []measure.Metric // to predict
	Gates   []slo.Gate       // objectives that a deployment should meet
	// Parallel is the number of runs simulated at once; 0 is one per CPU core.
	Parallel int
	// Each, if not nil, is called after each prediction, one call at a time.
	Each func(Prediction)
}

// Candidate is a deployment to predict.
type Candidate struct {
	engine.Deployment
	// Variant distinguishes candidates with the same number of engines, such as "prefix
	// routing".
	Variant string
}

// Candidates returns the deployments at points of a set.
func Candidates(base Config, points []Point) (all []Candidate, err error) {
	for _, p := range points {
		cfg := base
		var differences []string
		for _, v := range p.Values {
			if err := cfg.Replace(v.Setting, v.Text, "set"); err != nil {
				return nil, wrong("{%s} %v", v.Setting, err)
			}
			switch v.Setting {
			case "engines", "prefill-engines", "decode-engines":
			case "routing":
				differences = append(differences, v.Text)
			default:
				differences = append(differences, v.Setting+" "+v.Text)
			}
		}
		if err := cfg.prepare(); err != nil {
			return nil, err
		}
		all = append(all, Candidate{cfg.engines, strings.Join(differences, ", ")})
	}
	return all, nil
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

// Prediction is the simulated outcome of a deployment under a load.
type Prediction struct {
	Candidate
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
	Judgements []slo.Judgement      // of its gates
	Met        bool                 // all gates passed and the run is not INVALID
	State      engine.Stats         // of all engines at the end
	Verdict    measure.Verdict
	// Completed and Failed are numbers of requests.
	Completed, Failed int
	OfferedRate       trace.Opt[float64] // requests per second, by due time
	PeakConcurrency   int                // most requests in flight
}

// MeanQueue returns the mean time that a request waited in an engine's queue, in
// milliseconds.
func (f *Forecast) MeanQueue() trace.Opt[float64] {
	n := f.State.Admitted
	return trace.Opt[float64]{Value: trace.MS(f.State.Queued) / float64(max(n, 1)), Set: n > 0}
}

// Planner simulates a trace on deployments in memory. It is safe for concurrent use.
type Planner struct {
	cfg    PlanConfig
	in     *input // of rows in memory
	coarse bool   // without the times of tokens
	// lengths is the range of ISL and OSL, zero without an engine file.
	lengths fit.Range

	mu      sync.Mutex
	prompts map[int]*virtual.Prompts // by the engines' block size
}

// Notes returns remarks on the trace for a report.
func (p *Planner) Notes() []string { return p.in.notes }

// Trace returns the name of the trace and its number of requests.
func (p *Planner) Trace() (name string, requests int) { return p.in.Name, p.in.plan.Rows }

// NewPlanner reads the trace. A [*settings.Error] reports an invalid configuration.
func NewPlanner(ctx context.Context, cfg PlanConfig) (*Planner, error) {
	cfg.Run.Virtual, cfg.Run.Output.Dir, cfg.Run.Resume = true, "", false
	if cfg.Parallel <= 0 {
		cfg.Parallel = runtime.GOMAXPROCS(0)
	}
	if err := cfg.Run.prepare(); err != nil {
		return nil, err
	}
	in, err := await(ctx, func() (*input, error) {
		in, err := readTrace(ctx, &cfg.Run)
		if err != nil {
			return nil, err
		}
		return in.inMemory()
	})
	if err != nil {
		return nil, err
	}
	p := &Planner{cfg: cfg, in: in, coarse: !cfg.needsTokenTimes(), prompts: map[int]*virtual.Prompts{}}
	if in.lengths != nil {
		p.lengths = in.lengths.fitted()
	}
	return p, nil
}

// needsTokenTimes reports whether runs must be simulated token by token: for a metric, a
// window, or abandoned answers.
func (c *PlanConfig) needsTokenTimes() bool {
	return c.Run.Window != (runfile.Window{}) || c.Run.Client.CancelAfter > 0 ||
		slices.ContainsFunc(c.Metrics, measure.Metric.NeedsTokenTimes) ||
		slices.ContainsFunc(c.Gates, func(g slo.Gate) bool { return g.Metric.NeedsTokenTimes() })
}

// Memory limits for the rows of a trace: number of rows and of block ids.
const (
	maxPlannedRows   = 4 << 20
	maxPlannedBlocks = 64 << 20
)

// inMemory returns the rows to replay, without their pacing, as an input that is read
// from memory.
func (in *input) inMemory() (*input, error) {
	rows, reader, err := in.open()
	if err != nil {
		return nil, err
	}
	defer closeReader(reader)
	rows = in.pacing.Select(rows)
	if in.plan.Rows > maxPlannedRows {
		return nil, fmt.Errorf("%s has %d rows: at most %d are simulated for several deployments", in.Name, in.plan.Rows, maxPlannedRows)
	}
	kept, blocks := make([]trace.Request, 0, in.plan.Rows), 0
	for r, err := range rows {
		if err != nil {
			return nil, in.locate(err, reader)
		}
		if blocks += len(r.HashIDs); blocks > maxPlannedBlocks {
			return nil, fmt.Errorf("%s has more than %d block ids: use fewer rows", in.Name, maxPlannedBlocks)
		}
		kept = append(kept, r)
	}
	held := *in
	held.Path, held.Requests = "", trace.FromSlice(kept)
	held.pacing.SpreadGrid, held.pacing.Start, held.pacing.End, held.pacing.Limit = false, 0, 0, 0
	return &held, nil
}

// Predict simulates the candidates. It stops at the first failure.
func (p *Planner) Predict(ctx context.Context, candidates []Candidate) ([]Prediction, error) {
	predictions := make([]Prediction, len(candidates))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var working sync.WaitGroup
	var showing sync.Mutex
	var next atomic.Int64
	for range min(p.cfg.Parallel, len(candidates)) {
		working.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(candidates) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				forecast, err := p.simulate(ctx, candidates[i].Deployment)
				if err != nil {
					cancel(err)
					return
				}
				predictions[i] = Prediction{candidates[i], forecast, p.outside(candidates[i].Deployment, forecast.PeakConcurrency)}
				if p.cfg.Each != nil {
					showing.Lock()
					p.cfg.Each(predictions[i])
					showing.Unlock()
				}
			}
		})
	}
	working.Wait()
	return predictions, context.Cause(ctx)
}

// outside warns about a load outside the fitted range of the engine file, if any.
func (p *Planner) outside(d engine.Deployment, inFlight int) (warnings []string) {
	if p.cfg.Run.file == nil {
		return nil
	}
	running := fit.Range{}
	setRunning(&running, d, inFlight)
	return p.cfg.Run.outsideRange(p.lengths, running)
}

// simulate replays the trace on a deployment in virtual time, without a record on disk.
func (p *Planner) simulate(ctx context.Context, d engine.Deployment) (f Forecast, err error) {
	kept, info, state, err := p.records(ctx, d)
	if err != nil {
		return f, err
	}
	result, err := kept.measure(info)
	if err != nil {
		return f, err
	}
	f = Forecast{
		State: state, Verdict: result.Verdict, Completed: result.Completed, Failed: result.Failed,
		OfferedRate: result.OfferedRate, PeakConcurrency: result.PeakConcurrency,
	}
	for _, m := range p.cfg.Metrics {
		f.Values = append(f.Values, m.Value(result))
	}
	for _, g := range p.cfg.Gates {
		f.Judgements = append(f.Judgements, g.Judge(result))
	}
	f.Met = result.Verdict.Level != measure.Invalid && len(slo.Failed(f.Judgements)) == 0
	return f, nil
}

// promptsOf returns the prompts in blocks of a size, which all runs share.
func (p *Planner) promptsOf(blockSize int) *virtual.Prompts {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.prompts[blockSize] == nil {
		p.prompts[blockSize] = virtual.NewPrompts(p.in.plan.Rows)
	}
	return p.prompts[blockSize]
}

// records replays the trace on a deployment in virtual time.
func (p *Planner) records(ctx context.Context, d engine.Deployment) (recordsInMemory, *runfile.Run, engine.Stats, error) {
	cfg := p.cfg.Run
	cfg.engines = d
	options := cfg.virtualOptions(p.in)
	options.Coarse, options.Prompts = p.coarse, p.promptsOf(options.Deployment.Engine.WithDefaults().BlockSize)
	endpoint, err := newEndpoint(options)
	if err != nil {
		return nil, nil, engine.Stats{}, err
	}
	rows, end, err := p.in.replayed()
	if err != nil {
		return nil, nil, engine.Stats{}, err
	}
	defer end()
	info := cfg.record(p.in)
	info.Target, info.Started = cfg.virtualTarget(), time.Now()
	kept := make(recordsInMemory, 0, p.in.plan.Rows)
	tally, runErr := cfg.virtualRunner(endpoint, &kept, p.in).Run(ctx, rows)
	if err := errors.Join(ctx.Err(), settle(&info, tally, 0, runErr)); err != nil {
		return nil, nil, engine.Stats{}, err
	}
	return kept, &info, endpoint.Stats(), nil
}

// recordsInMemory is a recorder without a folder.
type recordsInMemory []replay.Record

// Record implements [replay.Recorder].
func (m *recordsInMemory) Record(rec replay.Record) error {
	*m = append(*m, rec)
	return nil
}

func (m recordsInMemory) each(yield func(replay.Record, error) bool) {
	for _, rec := range m {
		if !yield(rec, nil) {
			return
		}
	}
}

// measure computes the metrics, without the prediction of cached tokens.
func (m recordsInMemory) measure(info *runfile.Run) (*measure.Result, error) {
	opts := optionsOf(info)
	opts.BlockSize, opts.Expected = 0, len(m)
	if info.Settings.Window != (runfile.Window{}) {
		extent, err := measure.Extent(m.each, info.Settings.Window)
		if err != nil {
			return nil, err
		}
		if opts.Window, err = measure.Cut(extent, info.Settings.Window); err != nil {
			return nil, err
		}
	}
	return measure.Compute(m.each, opts)
}
