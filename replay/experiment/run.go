package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"moontide/replay"
	"moontide/replay/evidence"
	"moontide/replay/openai"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/atomicfile"
)

// Errors of a measured run.
var (
	ErrStopped   = errors.New("the run was stopped before the trace's end")
	ErrNoSuccess = errors.New("no request succeeded")
)

// Run replays a trace, records it and measures it. It first checks everything
// that can be checked without sending; a [*settings.Error] reports an invalid
// configuration.
//
// If the result is not nil, the run was measured even if there is an error:
// [ErrStopped], [ErrNoSuccess], the failure of the run, or a file that could not be
// written. A bad verdict is not an error. When ctx ends before the first request, Run
// returns its error; later, it cancels the requests in flight and returns [ErrStopped].
func Run(ctx context.Context, cfg Config) (result *Result, err error) {
	if err := cfg.prepare(); err != nil {
		return nil, err
	}
	if m := cfg.Part; m != nil {
		var left func()
		ctx, left = cfg.join(ctx)
		defer left()
		defer func() {
			if ended := m.Err(); result == nil && ended != nil { // why the run was cancelled
				err = ended
			}
		}()
	}
	starting, cancel := context.WithCancel(ctx) // before the first request, Drain cancels
	defer cancel()
	if cfg.Drain != nil {
		go func() {
			select {
			case <-cfg.Drain:
				cancel()
			case <-starting.Done():
			}
		}()
	}
	in, err := await(starting, func() (*input, error) { return readTrace(starting, &cfg) })
	if err != nil {
		return nil, err
	}
	dir, remove, err := cfg.folder()
	if err != nil {
		return nil, err
	}
	defer remove()
	info := cfg.record(in)
	if cfg.Virtual {
		result, err = simulate(starting, &cfg, in, info, dir)
	} else {
		result, err = drive(ctx, starting, &cfg, in, info, dir)
	}
	if result == nil {
		return nil, err
	}
	if result.Dir = cfg.Output.Dir; cfg.Part != nil && !cfg.Part.Leads() {
		result.Dir = cfg.recordDir()
	}
	switch {
	case err != nil || result.Run.Failure != "":
	case result.Run.Stopped:
		if err = ErrStopped; cfg.Part != nil {
			err = cmp.Or(cfg.Part.Err(), ErrStopped)
		}
	case result.Metrics.Completed == 0 && result.Run.Rows > 0: // a part may have none
		err = ErrNoSuccess
	}
	return result, err
}

// await returns the result of f, or ctx's error as soon as ctx ends: f may wait
// for a row that never comes.
func await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := f()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// recordDir returns the folder of the records of this process.
func (c *Config) recordDir() string {
	if c.Part != nil {
		return c.Part.Folder()
	}
	return c.Output.Dir
}

// folder returns the folder that the run is recorded in.
func (c *Config) folder() (dir string, remove func(), err error) {
	switch {
	case c.Resume:
		return c.recordDir(), func() {}, nil
	case c.Part != nil: // the folder of the run is that of all parts, which TryFolder must not remove
		if err := os.MkdirAll(c.Output.Dir, 0o755); err != nil {
			return "", nil, fmt.Errorf("making run folder: %w", err)
		}
		return c.Part.Folder(), func() {}, runfile.TryFolder(c.Part.Folder())
	case c.Output.Dir != "":
		return c.Output.Dir, func() {}, runfile.TryFolder(c.Output.Dir)
	}
	if dir, remove, err = atomicfile.TemporaryFolder(); err != nil {
		return "", nil, fmt.Errorf("making a folder for the record: %w", err)
	}
	return filepath.Join(dir, "run"), remove, nil
}

// record returns the content of run.json before the endpoint is known.
func (c *Config) record(in *input) runfile.Run {
	return runfile.Run{Settings: c.recorded, Outcome: runfile.Outcome{
		Version: c.Version, Command: c.Command, Sources: c.recorded.Sources(),
		Host: runfile.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()},
		Trace: runfile.Source{
			Name: in.Name, SHA256: in.sha256, DigestRows: in.digested, DurationMS: in.plan.DurationMS, BlockSize: in.blockSize.Tokens,
		},
		Point: c.point.Masked(), Rows: in.partRows, Schedule: in.plan.Schedule, LostTurns: in.plan.Graph.Lost(), Notes: in.notes,
	}}
}

// drive replays the trace, or the rest of it, against an endpoint.
func drive(ctx, starting context.Context, cfg *Config, in *input, info runfile.Run, dir string) (*Result, error) {
	earlier, err := openEarlier(cfg, in)
	if err != nil {
		return nil, err
	}
	defer earlier.release()
	client, end, err := connect(starting, cfg, in, &info)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := warmUp(starting, cfg, in, client); err != nil {
		return nil, err
	}
	info.Warmup = cfg.WarmupRequests
	rows, closeRows, err := in.replayed()
	if err != nil {
		return nil, err
	}
	defer closeRows()
	if err := cfg.agree(starting, in, &info, earlier); err != nil {
		return nil, err
	}
	defer delayGC()()
	info.Started = time.Now()
	folder, past, err := earlier.record(&info, dir)
	if err != nil {
		return nil, err
	}
	if past, err = in.together(past, cfg.done); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	folder.KeepText, folder.NoChunkTimes = cfg.Output.KeepText, cfg.Output.NoChunkTimes
	runner := &replay.Runner{
		Client:         client,
		Recorder:       watched{folder, cfg.Observer.Record},
		MaxConcurrency: cfg.MaxConcurrency, Closed: cfg.Closed, Duration: cfg.Duration,
		MaxErrors: cfg.MaxErrors, Retries: cfg.Retries,
		Graph: in.plan.Graph, Sessions: cfg.Sessions, Resume: past,
		Precise: true,
		Drain:   cfg.Drain,
		Rows:    in.part,
		Begin:   cfg.begin(folder, in, &info),
	}
	watcher, err := observe(ctx, cfg, folder, runner, client)
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	cfg.Observer.start(cfg.started(Started{Run: info, Dir: dir, Plan: in.plan, Status: runner.Status}))
	tally, runErr := runner.Run(ctx, rows)
	cfg.Observer.end()

	info.Prompts = client.PromptDigest()
	info.Notes = append(info.Notes, answerNotes(client.AnswerCounts(), past)...)
	sampleErr := watcher.end(&info)
	done := 0
	if past == nil && cfg.Part == nil { // a part has its own clock
		info.Started = tally.Start
	}
	if earlier != nil { // this process does not know what was sent before the run was resumed
		done, info.Prompts = past.Rows, ""
	}
	runErr = settle(&info, tally, done, runErr)
	cfg.compareClock(ctx, &info)
	err = errors.Join(runErr, sampleErr, folder.Close(), folder.WriteRun(info))
	if cfg.Part != nil {
		return cfg.endPart(ctx, in, &info, err)
	}
	// Measure the records even after an error, using info from memory: on a full
	// disk, the folder may still hold an older version.
	result, measureErr := measureRun(dir, &info)
	return result, errors.Join(err, measureErr)
}

// answerNotes reports turns that were sent without the real answers before them.
func answerNotes(n openai.AnswerCounts, past *replay.ResumeState) (notes []string) {
	if n.Unchanged > 0 {
		notes = append(notes, fmt.Sprintf("%d later turns have text of their own that does not continue an earlier turn: they were sent as in the trace", n.Unchanged))
	}
	if n.Forgotten > 0 {
		notes = append(notes, fmt.Sprintf("%d answers were not kept for later turns because those of other turns in progress took too much memory", n.Forgotten))
	}
	if past != nil && n != (openai.AnswerCounts{}) {
		notes = append(notes, "answers from before the run was resumed are not kept: the sessions in progress continued with those of the trace")
	}
	return notes
}

func measureRun(dir string, info *runfile.Run) (*Result, error) {
	return Measure(MeasureConfig{Detail: true, Change: func(recorded *runfile.Run) { *recorded = *info }}, dir)
}

// watched is a recorder that also passes its records to see.
type watched struct {
	*runfile.Writer
	see func(replay.Record)
}

func (w watched) Record(rec replay.Record) error {
	if w.see != nil {
		w.see(rec)
	}
	return w.Writer.Record(rec)
}

func (o Observer) start(s Started) {
	if o.Start != nil {
		o.Start(s)
	}
}

func (o Observer) end() {
	if o.End != nil {
		o.End()
	}
}

// settle completes the record of a run that has ended and returns its failure.
// done is the number of requests that ended before the run was resumed.
func settle(info *runfile.Run, tally replay.Tally, done int, runErr error) error {
	info.Ended = time.Now()
	info.Sent, info.Skipped, info.Cut = done+tally.Sent, tally.Skipped, tally.Cut
	info.Outgrown, info.Unfinished = tally.Outgrown, tally.Unfinished
	info.NotSent = info.Rows - info.Sent
	ended := tally.Skipped + tally.Cut // rows of sessions that had ended
	info.Stopped = tally.Stopped && (info.NotSent > ended || tally.Canceled > 0)
	info.TimeUp = tally.TimeUp && !info.Stopped && info.NotSent > ended
	if read := info.Sent + ended; runErr == nil && !tally.Stopped && !tally.TimeUp && read != info.Rows {
		runErr = fmt.Errorf("the trace changed during the replay: it had %d rows, then %d", info.Rows, read)
	}
	if tally.Unrecorded > 0 {
		runErr = fmt.Errorf("%w: %d finished requests are not in the record", runErr, tally.Unrecorded)
	}
	if runErr != nil {
		info.Failure = runErr.Error()
	}
	return runErr
}

// NewFolder returns an unused path below parent for a run's folder, named after
// the time and name.
func NewFolder(parent, name string) string {
	dir := filepath.Join(parent, time.Now().Format("20060102-150405")+"-"+name)
	free := dir
	for i := 2; runfile.CheckFolder(free) != nil && i < 1000; i++ {
		free = fmt.Sprintf("%s-%d", dir, i)
	}
	return free
}

// watcher collects the evidence of a run while it is in progress.
type watcher struct {
	client            *openai.Client
	sampler           *evidence.Sampler
	delays            func() runfile.ReadDelay // of the whole run
	stampErrorsBefore openai.StampErrors
}

// observe starts recording a run in its folder.
func observe(ctx context.Context, cfg *Config, folder *runfile.Writer, runner *replay.Runner, client *openai.Client) (*watcher, error) {
	if err := folder.OpenFiles(); err != nil {
		return nil, err
	}
	sampling := evidence.Config{Write: folder.Sample, Status: runner.Status, ReadDelay: readDelays(client)}
	if len(cfg.ServerMetrics) > 0 {
		scraper, err := evidence.New(cfg.ServerMetrics, cfg.Client.TLSConfig())
		if err != nil {
			return nil, err
		}
		sampling.Server = scraper.Scrape
	}
	return &watcher{client: client, delays: readDelays(client), stampErrorsBefore: client.StampErrors(), sampler: evidence.Start(ctx, sampling)}, nil
}

// end adds the evidence to info. It returns errors of sampling.
func (w *watcher) end(info *runfile.Run) error {
	info.ReadDelay = w.delays()
	m := w.client.StampErrors().Since(w.stampErrorsBefore)
	info.Merges = runfile.Merges{Chunks: m.Chunks, Merged: m.Shared.Count(), P99MS: trace.MS(m.Quantile(0.99)), MaxMS: trace.MS(m.Quantile(1))}
	return w.sampler.Stop()
}

// readDelays returns a function for the client's read delay since its last call.
func readDelays(client *openai.Client) func() runfile.ReadDelay {
	before := client.ReadDelay()
	return func() runfile.ReadDelay {
		now := client.ReadDelay()
		d := now.Since(before)
		before = now
		return runfile.ReadDelay{Reads: d.Count(), MedianMS: trace.MS(d.Quantile(0.5)), P99MS: trace.MS(d.Quantile(0.99)), MaxMS: trace.MS(d.Quantile(1))}
	}
}

// ballast is the number of bytes of garbage that a run may create between two
// collections, in addition to Go's default.
const ballast = 64 << 20

// delayGC makes garbage collections rare until the returned function is called. The live
// heap of a run is small, so Go would collect several times a second, with a pause each
// time. The ballast is never touched, so it takes no memory: the heap only looks larger.
func delayGC() (end func()) {
	spare := make([]byte, ballast)
	return func() { runtime.KeepAlive(spare) }
}
