package experiment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/replay/settings"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
	"moontide/replay/sim/virtual"
	"moontide/trace"
	"moontide/trace/stats"
)

// simulate replays the trace in virtual time.
func simulate(ctx context.Context, cfg *Config, in *input, info runfile.Run, dir string) (*Result, error) {
	engines := cfg.engines
	endpoint, err := newEndpoint(cfg.virtualOptions(in))
	if err != nil {
		return nil, err
	}
	rows, closeRows, err := in.replayed()
	if err != nil {
		return nil, err
	}
	defer closeRows()
	info.Started = time.Now()
	info.Target = cfg.virtualTarget()
	info.Notes = append(info.Notes, "simulated in virtual time: "+DescribeEngines(engines, cfg.file))
	if text := HeldOutErrors(cfg.file); text != "" {
		info.Notes = append(info.Notes, text)
	}
	folder, err := runfile.Create(dir, info)
	if err != nil {
		return nil, err
	}
	folder.KeepText = cfg.Output.KeepText
	opts := optionsOf(&info)
	opts.Detail = true
	kept := recordAndMeasure(folder, opts)
	tally, runErr := cfg.virtualRunner(endpoint, kept, in).Run(ctx, rows)
	metrics, recordErr := kept.end()
	switch tally.Stopped = false; {
	case errors.Is(runErr, context.Canceled) || errors.Is(runErr, context.DeadlineExceeded):
		tally.Stopped, tally.Canceled, runErr = true, tally.Unrecorded, nil
		info.Notes = append(info.Notes, fmt.Sprintf("%d requests were in flight when it was stopped, and are not in the record", tally.Unrecorded))
	}
	tally.Unrecorded = 0
	if metrics != nil {
		info.Notes = append(info.Notes, cfg.outside(in, metrics.PeakConcurrency)...)
	}
	err = errors.Join(settle(&info, tally, 0, errors.Join(runErr, recordErr)), folder.WriteRun(info))
	if metrics == nil {
		return nil, err
	}
	if info.Settings.Window != (runfile.Window{}) || info.Failure != "" { // they need the end of the run
		result, measureErr := measureRun(dir, &info)
		return result, errors.Join(err, measureErr)
	}
	return &Result{Run: info, Metrics: metrics}, err
}

func (c *Config) virtualOptions(in *input) virtual.Config {
	return virtual.Config{
		Deployment: c.engines, TraceBlockSize: in.blockSize.Tokens, CacheGenerated: c.CacheGenerated,
		LiveAnswers: c.LiveAnswers(), Graph: in.plan.Graph, CancelAfter: c.Client.CancelAfter,
	}
}

func newEndpoint(options virtual.Config) (*virtual.Endpoint, error) {
	endpoint, err := virtual.New(options)
	if err != nil {
		return nil, &settings.Error{Text: err.Error()}
	}
	return endpoint, nil
}

func (c *Config) virtualTarget() runfile.Target {
	return runfile.Target{
		Model: "sim", Endpoint: "virtual", Prompt: "hash_ids", Simulated: true,
		ServerBlockSize: c.serverBlockSize(), IgnoreEOS: true, GeneratedCached: c.CacheGenerated,
		Engines: c.recordedEngines(),
	}
}

func (c *Config) virtualRunner(model replay.Model, recorder replay.Recorder, in *input) *replay.VirtualRunner {
	return &replay.VirtualRunner{
		Model: model, Recorder: recorder,
		MaxConcurrency: c.MaxConcurrency, Closed: c.Closed, Duration: c.Duration, Graph: in.plan.Graph, Sessions: c.Sessions,
	}
}

// measuringRecorder writes a run's folder and measures the run at the same time: reading
// the records back would take longer than the simulation.
type measuringRecorder struct {
	*runfile.Writer
	toMeasure chan replay.Record
	metrics   chan *measure.Result
}

func recordAndMeasure(folder *runfile.Writer, opts measure.Options) *measuringRecorder {
	m := &measuringRecorder{folder, make(chan replay.Record, 256), make(chan *measure.Result, 1)}
	go func() {
		metrics, _ := measure.Compute(func(yield func(replay.Record, error) bool) {
			for rec := range m.toMeasure {
				if !yield(rec, nil) {
					return
				}
			}
		}, opts) // fails only on errors in the records
		m.metrics <- metrics
	}()
	return m
}

// Record implements [replay.Recorder].
func (m *measuringRecorder) Record(rec replay.Record) error {
	if err := m.Writer.Record(rec); err != nil {
		return err
	}
	m.toMeasure <- rec
	return nil
}

// end waits until all records are measured, and closes the folder.
func (m *measuringRecorder) end() (*measure.Result, error) {
	close(m.toMeasure)
	return <-m.metrics, m.Close()
}

// DescribeEngines describes simulated engines in words; file may be nil.
func DescribeEngines(d engine.Deployment, file *fit.File) string {
	if file == nil {
		return d.String()
	}
	return fmt.Sprintf("%v, engines of %s", d, file.Name)
}

// HeldOutErrors describes the errors of predictions of fitted engines, "" for others.
func HeldOutErrors(file *fit.File) string {
	var texts []string
	for _, key := range strings.Fields("output_throughput mean_ttft_ms p99_ttft_ms mean_tpot_ms mean_e2el_ms") {
		if share, known := file.HeldOutError(key); known {
			texts = append(texts, fmt.Sprintf("%s ±%.0f %%", measure.MustMetric(key).Label, 100*share))
		}
	}
	if texts == nil {
		return ""
	}
	return fmt.Sprintf("errors of %s on held-out measurements, for nine in ten predictions: %s", file.Name, strings.Join(texts, ", "))
}

// recordedEngines returns the simulated engines for run.json.
func (c *Config) recordedEngines() runfile.Engines {
	e := runfile.Engines{Deployment: c.engines.String()}
	if f := c.file; f != nil {
		e.File = runfile.File{Name: f.Name, SHA256: f.SHA256}
	}
	return e
}

// lengths collects the lengths of the replayed rows.
type lengths struct{ input, output stats.Collector }

func (l *lengths) add(r trace.Request) {
	l.input.Add(float64(r.InputLength))
	l.output.Add(float64(r.OutputLength))
}

// fitted returns the range of the lengths, from the 1st to the 99th percentile.
func (l *lengths) fitted() fit.Range {
	of := func(c *stats.Collector) fit.Interval {
		s := c.Sample()
		return fit.Interval{Low: int(s.Quantile(0.01)), High: int(s.Quantile(0.99))}
	}
	return fit.Range{ISL: of(&l.input), OSL: of(&l.output)}
}

// setRunning sets the running sequences per engine, given the requests in flight.
func setRunning(load *fit.Range, d engine.Deployment, inFlight int) {
	engines := max(d.Engines, d.Decode, 1)
	perEngine := (inFlight + engines - 1) / engines
	if limit := d.Engine.MaxSeqs; limit > 0 {
		perEngine = min(perEngine, limit)
	}
	load.Running = fit.Interval{Low: perEngine, High: perEngine}
}

// outside warns about a load outside the fitted range of the engine file: the p99 of
// the lengths, and the requests in flight, 0 if unknown.
func (c *Config) outside(in *input, inFlight int) []string {
	if c.file == nil || in.lengths == nil {
		return nil
	}
	load := in.lengths.fitted()
	if n := inFlight; n > 0 {
		load.Concurrency = fit.Interval{Low: n, High: n}
		setRunning(&load, c.engines, n)
	}
	texts := c.outsideRange(load)
	for i := range texts {
		texts[i] = "warning: " + texts[i]
		c.Observer.message("%s", texts[i])
	}
	return texts
}

// outsideRange returns a warning for each load outside the fitted range of the engine
// file.
func (c *Config) outsideRange(loads ...fit.Range) (texts []string) {
	for _, load := range loads {
		if far := c.file.Outside(load); far != nil {
			texts = append(texts, fmt.Sprintf("outside the range that %s was fitted to: %s", c.file.Name, strings.Join(far, "; ")))
		}
	}
	return texts
}
