package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/virtual"
	"moontide/trace"
)

// PlanLoad is how much work a deployment gets: a Speedup of the trace, in addition to that
// of its pacing, or a Concurrency in a closed loop. The zero value is the load of the trace.
type PlanLoad struct {
	Axis  Axis
	Level float64
}

// String returns the load, such as "concurrency 8", or "" for that of the trace.
func (l PlanLoad) String() string {
	if l.Axis == "" {
		return ""
	}
	return fmt.Sprintf("%s %s", l.Axis, FormatLevel(l.Level))
}

// apply sets the load in a configuration and a pacing.
func (l PlanLoad) apply(cfg *Config, p *trace.Pacing) (known bool) {
	switch l.Axis {
	case Speedup:
		p.Speedup = cmp.Or(p.Speedup, 1) * l.Level
	case Concurrency:
		cfg.Closed, cfg.MaxConcurrency = true, int(l.Level)
		p.Closed, p.Arrivals, p.Ramp, p.SpreadGrid = true, nil, 0, false
	default:
		return l.Axis == ""
	}
	return true
}

// workload is a trace at a load, prepared for simulations.
type workload struct {
	cfg  *Config
	in   *input
	load PlanLoad

	mu      sync.Mutex
	prompts map[int]*virtual.Prompts // by the engines' block size
}

// promptsOf returns the prompts in blocks of a size.
func (w *workload) promptsOf(blockSize int) *virtual.Prompts {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.prompts[blockSize]
	if p == nil {
		if w.prompts == nil {
			w.prompts = map[int]*virtual.Prompts{}
		}
		p = virtual.NewPrompts(w.in.plan.Rows)
		w.prompts[blockSize] = p
	}
	return p
}

// These limit the memory that rows of a trace take: their number, and that of
// their block ids.
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
	if in.pacing.Limit > 0 {
		rows = trace.Take(rows, in.pacing.Limit)
	}
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

// at returns the workload at a load.
func (p *Planner) at(ctx context.Context, l PlanLoad) (*workload, error) {
	if l.Axis == "" {
		return p.base, nil
	}
	cfg, in := p.cfg.Run, *p.in
	if !l.apply(&cfg, &in.pacing) {
		return nil, fmt.Errorf("unknown load %q", l.Axis)
	}
	if err := in.pacing.Check(); err != nil {
		return nil, &ConfigError{"", err}
	}
	var err error
	if in.plan, err = replay.Scan(trace.Until(ctx, in.pacing.Apply(in.Requests))); err != nil {
		return nil, fmt.Errorf("%v: %w", l, err)
	}
	return &workload{cfg: &cfg, in: &in, load: l}, nil
}

// simulate replays a workload on a deployment in virtual time, without a record on
// disk.
func (p *Planner) simulate(ctx context.Context, d engine.Deployment, w *workload) (f Forecast, err error) {
	kept, info, state, err := p.records(ctx, d, w)
	if err != nil {
		return f, err
	}
	result, err := kept.measure(info)
	if err != nil {
		return f, err
	}
	f = Forecast{
		State: state, Verdict: result.Verdict, Completed: result.Completed, Failed: result.Failed,
		OfferedRate: result.OfferedRate, AchievedRate: result.AchievedRate, PeakConcurrency: result.PeakConcurrency,
		Met: result.Verdict.Level != run.Invalid,
	}
	for _, m := range p.cfg.Metrics {
		f.Values = append(f.Values, m.Value(result))
	}
	for _, g := range p.cfg.Gates {
		f.Judgements = append(f.Judgements, g.Judge(result))
	}
	f.Met = f.Met && len(run.Failed(f.Judgements)) == 0
	return f, nil
}

// records replays a workload on a deployment in virtual time.
func (p *Planner) records(ctx context.Context, d engine.Deployment, w *workload) (recordsInMemory, *runfile.Run, engine.Stats, error) {
	cfg := *w.cfg
	cfg.Engines = d
	options := cfg.virtualOptions(w.in)
	options.Coarse, options.Prompts = p.coarse, w.promptsOf(options.Deployment.Engine.WithDefaults().BlockSize)
	endpoint, err := newEndpoint(options)
	if err != nil {
		return nil, nil, engine.Stats{}, err
	}
	rows, end, err := w.in.replayed()
	if err != nil {
		return nil, nil, engine.Stats{}, err
	}
	defer end()
	info := cfg.record(w.in)
	info.Target, info.Started = cfg.virtualTarget(), time.Now()
	kept := make(recordsInMemory, 0, w.in.plan.Rows)
	tally, runErr := cfg.virtualRunner(endpoint, &kept, w.in).Run(ctx, rows)
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
func (m recordsInMemory) measure(info *runfile.Run) (*run.Result, error) {
	opts := optionsOf(info)
	opts.BlockSize, opts.Expected = 0, len(m)
	if info.Window != (runfile.Window{}) {
		extent, err := run.Extent(m.each, info.Window)
		if err != nil {
			return nil, err
		}
		if opts.Window, err = run.Cut(extent, info.Window); err != nil {
			return nil, err
		}
	}
	return run.Compute(m.each, opts)
}
