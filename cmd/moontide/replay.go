package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report"
	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/openai"
	"moontide/replay/runfile"
	"moontide/trace"
)

// Flags of every verb that makes a run.
var (
	maxConcurrencyFlag = &cli.IntFlag{Name: "max-concurrency", Category: inLoad, Usage: "at most `N` requests in flight; later requests queue in the client, and the time is measured", DefaultText: "no limit"}
	closedFlag         = &cli.BoolFlag{Name: "closed", Category: inLoad, DisableDefaultText: true, Usage: "closed loop: ignore the trace's arrivals and keep --max-concurrency requests in flight"}
	durationFlag       = &cli.DurationFlag{Name: "duration", Category: inRunControl, Usage: "stop sending after `TIME`; requests in flight finish", DefaultText: "no limit"}
	warmupTimeFlag     = &cli.DurationFlag{Name: "warmup-time", Category: inValidity, Usage: "exclude the first `TIME` of the run from the metrics"}
	cooldownTimeFlag   = &cli.DurationFlag{Name: "cooldown-time", Category: inValidity, Usage: "exclude the last `TIME` of the run from the metrics"}
	outFlag            = &cli.StringFlag{Name: "out", Category: inOutput, Usage: "run folder `DIR`", DefaultText: "a new folder under runs"}
	// The trace of a bench does not say at which rate it was drawn.
	drawnRateFlag = &cli.Float64Flag{Name: "drawn-rate", Hidden: true}
	keepTextFlag  = &cli.BoolFlag{Name: "keep-text", Category: inOutput, DisableDefaultText: true, Usage: "record the trace's texts instead of their SHA-256"}
)

const noChunkTimesFlag = "no-chunk-times"

func replayCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Name:      "replay",
		Usage:     "send a trace's requests at their scheduled times and measure every response",
		ArgsUsage: "TRACE",
		Description: "Without --url a simulated endpoint runs in this process; it takes the engine flags of\n" +
			"moontide serve. The first interrupt stops sending and waits for the requests in flight, the\n" +
			"second ends the run at once. The exit status is 3 if the verdict is INVALID.",
		Flags: grouped(targetFlags(), pacingFlags(), runFlags(), evidenceFlags(), engineFlags(), []cli.Flag{
			&cli.Uint64Flag{Name: "seed", Category: inRequests, Usage: "seed of the prompts and of drawn arrivals; the same seed sends the same bytes"},
			&cli.StringFlag{Name: "salt", Category: inRequests, Usage: "change the prompt text but keep its prefix sharing, to avoid a warm cache"},
			&cli.DurationFlag{Name: "timeout", Category: inRunControl, Value: openai.DefaultTimeout, Usage: "time limit of one request, to the end of its response"},
			&cli.IntFlag{Name: "retry", Category: inRunControl, Usage: "retry a request that got 429 or 503 up to `N` times, after Retry-After or else 1 s, 2 s, 4 s"},
			&cli.IntFlag{Name: "abort-after-errors", Category: inRunControl, Usage: "stop the run after `N` failed requests", DefaultText: "never"},
			&cli.IntFlag{Name: "warmup-requests", Category: inRunControl, Usage: "send `N` unmeasured requests first, with the trace's lengths and other text"},
			&cli.DurationFlag{Name: "wait-ready", Category: inRunControl, Usage: "wait up to `TIME` for the endpoint to become ready"},
			&cli.StringFlag{Name: "resume", Category: inRunControl, Usage: "continue the stopped or killed run in `DIR`; flags default to those of that run"},
			drawnRateFlag,
			&cli.BoolFlag{Name: noChunkTimesFlag, Category: inOutput, DisableDefaultText: true, Usage: "do not record the time of each token chunk (most of a record); ITL then comes from a histogram"},
		}),
		Action: func(c *cli.Context) error { return replayTrace(c, std, stop) },
	}
}

// runFlags are those of every verb that makes a run.
func runFlags() []cli.Flag {
	return append(formatFlags(inTraceInput),
		maxConcurrencyFlag, closedFlag, durationFlag, warmupTimeFlag, cooldownTimeFlag,
		outFlag, keepTextFlag, blockSizeFlag, skipBadRowsFlag,
	)
}

// replayTrace prepares everything that can fail before it starts, replays,
// and reports from the run's folder.
func replayTrace(c *cli.Context, std streams, stop stop) error {
	path, err := one(c, "a trace")
	if err != nil {
		return err
	}
	earlier, err := openEarlier(c)
	if err != nil {
		return err
	}
	if err := checkReplayFlags(c); err != nil {
		return err
	}
	p, err := pacingOf(c)
	if err != nil {
		return err
	}
	file, remove, err := spoolTrace(std, path)
	if err != nil {
		return err
	}
	defer remove()
	in, err := inspect(stop.gently, c, std, file, p, func(r trace.Request) error { return openai.Accepts(c.String("endpoint"), r) })
	if err != nil {
		return err
	}
	in.name = traceName(path)
	if err := earlier.checkTrace(in); err != nil {
		return err
	}
	if err := earlier.take(in); err != nil {
		return err
	}
	defer earlier.release()
	dir := c.String("resume")
	if earlier == nil {
		if dir, err = runFolder(c, path); err != nil {
			return err
		}
	}
	client, info, end, err := connect(c, std, stop, in)
	if err != nil {
		return err
	}
	defer end()
	if info.Warmup, err = warmUp(c, std, stop, in, client); err != nil {
		return err
	}
	return drive(c, std, stop, in, client, earlier, info, dir)
}

// runFolder is where a run of the trace at path goes.
func runFolder(c *cli.Context, path string) (string, error) {
	dir := c.String(outFlag.Name)
	if dir == "" {
		dir = freeFolder(filepath.Join("runs", time.Now().Format("20060102-150405")+"-"+baseName(path)))
	}
	return dir, runfile.TryFolder(dir)
}

// freeFolder is dir, or dir-2 and so on if a run of the same second has it.
func freeFolder(dir string) string {
	free := dir
	for i := 2; runfile.CheckFolder(free) != nil && i < 1000; i++ {
		free = fmt.Sprintf("%s-%d", dir, i)
	}
	return free
}

func checkReplayFlags(c *cli.Context) error {
	switch {
	case c.Duration("timeout") <= 0:
		return misused("replay: --timeout is not a positive time: %v", c.Duration("timeout"))
	case c.Bool(noChunkTimesFlag) && (c.Duration(warmupTimeFlag.Name) > 0 || c.Duration(cooldownTimeFlag.Name) > 0):
		return misused("replay: --%s leaves out what a window of --%s and --%s is cut by", noChunkTimesFlag, warmupTimeFlag.Name, cooldownTimeFlag.Name)
	case c.Duration("wait-ready") < 0:
		return misused("replay: --wait-ready is a negative time: %v", c.Duration("wait-ready"))
	}
	for _, limit := range []struct {
		flag        string
		least, most int
	}{{"retry", 0, 100}, {"abort-after-errors", 1, math.MaxInt}, {"warmup-requests", 0, mostWarmup}} {
		if n := c.Int(limit.flag); c.IsSet(limit.flag) && (n < limit.least || n > limit.most) {
			return misused("replay: --%s is not from %d to %d: %d", limit.flag, limit.least, limit.most, n)
		}
	}
	if err := checkEvidenceFlags(c); err != nil {
		return err
	}
	return checkRunFlags(c)
}

// checkWindow checks the flags that say which part of a run is measured.
func checkWindow(c *cli.Context) error {
	for _, flag := range []string{warmupTimeFlag.Name, cooldownTimeFlag.Name} {
		if c.Duration(flag) < 0 {
			return misused("%s: --%s is a negative time: %v", c.Command.Name, flag, c.Duration(flag))
		}
	}
	return nil
}

// checkRunFlags checks what [runFlags] are given, each by itself.
func checkRunFlags(c *cli.Context) error {
	verb := c.Command.Name
	switch {
	case c.IsSet("max-concurrency") && c.Int("max-concurrency") < 1:
		return misused("%s: --max-concurrency is not a positive number: %d", verb, c.Int("max-concurrency"))
	case c.IsSet("duration") && c.Duration("duration") <= 0:
		return misused("%s: --duration is not a positive time: %v", verb, c.Duration("duration"))
	}
	if err := checkWindow(c); err != nil {
		return err
	}
	return checkBlockSize(c)
}

// connect finds the endpoint, or starts the embedded one, and settles with it
// what requests look like.
func connect(c *cli.Context, std streams, stop stop, in input) (*openai.Client, runfile.Run, func(), error) {
	fail := func(err error) (*openai.Client, runfile.Run, func(), error) { return nil, runfile.Run{}, nil, err }
	cfg, err := clientConfig(c, in)
	if err != nil {
		return fail(err)
	}
	simulated := len(cfg.URLs) == 0
	limit, err := checkOpenFiles(openFilesLimit(), in.plan.Rows, c.Int("max-concurrency"), simulated)
	if err != nil {
		return fail(err)
	}
	engines, described, err := embeddedEngines(c, simulated)
	if err != nil {
		return fail(err)
	}
	endServer := func() {}
	if simulated {
		if cfg.URL, endServer, err = embed(engines); err != nil {
			return fail(err)
		}
	}
	if screen(std.err) != nil {
		cfg.OnToken = in.live.token
	}
	client, err := openai.New(cfg)
	if err != nil {
		endServer()
		return fail(misused("replay: %w", err))
	}
	end := func() { client.Close(); endServer() }
	notes, err := awaitReady(stop.gently, std, c.Duration("wait-ready"), client.Probe)
	if err != nil {
		end()
		if stop.gently.Err() != nil {
			err = errors.New("interrupted")
		}
		return fail(err)
	}
	info := runOf(c, in)
	info.Target = targetOf(c, client, cfg.Source)
	info.Salt, info.Limits.TimeoutSeconds = cfg.Source.Salt, cfg.Timeout.Seconds()
	info.NoChunkTimes = c.Bool(noChunkTimesFlag)
	info.Limits.IdleSeconds = cfg.IdleTimeout.Seconds()
	info.Limits.MaxErrors, info.Limits.Retries = c.Int("abort-after-errors"), c.Int("retry")
	var uncalibrated []string
	info.Calibrated, uncalibrated = calibrated(calibrationFile())
	info.Notes = slices.Concat(info.Notes, described, limit, sourceNotes(cfg.Source), notes, uncalibrated)
	return client, info, end, nil
}

// runOf is what run.json says of any run of a trace.
func runOf(c *cli.Context, in input) runfile.Run {
	return runfile.Run{
		Version: version(), Command: maskedCommand(), Flags: setFlags(c),
		Host: runfile.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()},
		Trace: runfile.Source{
			Name: in.name, SHA256: in.sha256, DurationMS: in.plan.DurationMS, BlockSize: in.blockSize.Tokens,
			Speedup: c.Float64("speedup"), Rate: drawnRate(c), Limit: c.Int("limit"),
		},
		Seed:       c.Uint64("seed"),
		Limits:     runfile.Limits{MaxConcurrency: c.Int("max-concurrency"), Closed: c.Bool("closed"), DurationSeconds: c.Duration("duration").Seconds()},
		Window:     runfile.Window{WarmupSeconds: c.Duration("warmup-time").Seconds(), CooldownSeconds: c.Duration("cooldown-time").Seconds()},
		Thresholds: thresholdsOf(c, runfile.Thresholds{}),
		Rows:       in.plan.Rows, Schedule: in.plan.Schedule,
		Notes: in.notes(),
	}
}

// drawnRate is the rate at which arrivals were drawn, here or for a bench.
func drawnRate(c *cli.Context) float64 {
	if c.IsSet(drawnRateFlag.Name) {
		return c.Float64(drawnRateFlag.Name)
	}
	return c.Float64("rate") * c.Float64("speedup")
}

// drive is the run itself, or what is left of an earlier one.
func drive(c *cli.Context, std streams, stop stop, in input, client *openai.Client, earlier *earlierRun, info runfile.Run, dir string) error {
	defer collectSeldom()()
	info.Started = time.Now()
	folder, past, err := openRecord(earlier, &info, dir)
	if err != nil {
		return err
	}
	folder.KeepText, folder.NoChunkTimes = c.Bool("keep-text"), info.NoChunkTimes
	announce(std, info, dir)
	runner := &replay.Runner{
		Client:         client,
		MaxConcurrency: info.Limits.MaxConcurrency, Closed: info.Limits.Closed,
		Duration: c.Duration("duration"), MaxErrors: info.Limits.MaxErrors, Retries: info.Limits.Retries,
		Sessions: &in.plan.Sessions, Resume: past,
		Precise: true,
		Drain:   stop.gently.Done(),
	}
	reader, err := openTrace(c, std, in.path)
	if err != nil {
		return err
	}
	defer reader.Close()
	watcher, err := observe(c, folder, runner, client)
	if err != nil {
		return err
	}
	view := newView(std.err, in, info, runner)
	runner.Recorder = view.watching(folder)
	view.start()
	unhook := context.AfterFunc(stop.gently, func() {
		view.say(fmt.Sprintf("moontide: no more is sent; waiting for %d in flight, interrupt again to end at once\n", runner.Status().InFlight))
	})
	tally, runErr := runner.Run(stop.now, in.shape(reader.Requests()))
	unhook()
	view.end()

	info.Prompts = client.PromptDigest()
	sampleErr := watcher.end(&info)
	runErr = settle(&info, tally, past, runErr)
	// Whatever went wrong, what was measured is shown.
	return errors.Join(runErr, sampleErr, folder.Close(), folder.WriteRun(info), conclude(std, dir, info))
}

// openRecord makes the run's folder, or goes on with that of an earlier one.
func openRecord(earlier *earlierRun, info *runfile.Run, dir string) (*runfile.Writer, *replay.ResumeState, error) {
	if earlier == nil {
		folder, err := runfile.Create(dir, *info)
		return folder, nil, err
	}
	return earlier.folder, earlier.past, earlier.goOn(info)
}

// settle notes in run.json what became of a run. It returns what the run failed
// with, if it did.
func settle(info *runfile.Run, tally replay.Tally, past *replay.ResumeState, runErr error) error {
	done := 0
	if past == nil {
		info.Started = tally.Start
	} else {
		// What was sent before the run went on is not known to this process.
		done, info.Prompts = past.Rows, ""
	}
	info.Ended = time.Now()
	info.Sent, info.Skipped = done+tally.Sent, tally.Skipped
	info.NotSent = info.Rows - info.Sent
	info.Stopped = tally.Stopped && (info.NotSent > tally.Skipped || tally.Canceled > 0)
	info.TimeUp = tally.TimeUp && !info.Stopped && info.NotSent > tally.Skipped
	if read := info.Sent + tally.Skipped; runErr == nil && !tally.Stopped && !tally.TimeUp && read != info.Rows {
		runErr = fmt.Errorf("the trace changed while it was replayed: it had %d rows, and then %d", info.Rows, read)
	}
	if tally.Unrecorded > 0 {
		runErr = fmt.Errorf("%w: %d requests that ended are not in the record", runErr, tally.Unrecorded)
	}
	if runErr != nil {
		info.Failure = runErr.Error()
	}
	return runErr
}

// conclude measures the run from its folder and prints what it was. The run
// itself is as it is known here: a full disk may have kept the folder's old.
func conclude(std streams, dir string, info runfile.Run) error {
	measured, result, err := recording{dir}.measure(std, func(r *runfile.Run) { *r = info }, inDetail)
	if err != nil {
		return err
	}
	return present(std, dir, measured, result)
}

// inDetail has a run measured as its page takes it.
func inDetail(opts *run.Options) { opts.Detail = true }

// present prints what a run measured, in detail, and keeps its summary, its page
// and its picture.
func present(std streams, dir string, info runfile.Run, result *run.Result) error {
	if err := report.ServingText(std.out, info, result); err != nil {
		return err
	}
	fmt.Fprintf(std.out, "Run folder: %s\n", dir)
	if err := keepReports(std, dir, report.ServingRun{Name: filepath.Base(dir), Run: info, Result: result}); err != nil {
		return err
	}
	switch {
	case info.Failure != "": // said already
		return nil
	case info.Stopped:
		return errors.New("the run was stopped before the trace's end")
	case result.Completed == 0:
		return errors.New("no request succeeded")
	case result.Verdict.Level == run.Invalid:
		return errInvalid
	}
	return nil
}

// keepReports writes the reports of a run into its folder.
func keepReports(std streams, dir string, info report.ServingRun) error {
	runs := report.ServingRuns{info}
	return errors.Join(
		runfile.WriteJSON(filepath.Join(dir, runfile.SummaryFile), info.Summary()),
		writeFile(std, filepath.Join(dir, runfile.PageFile), runs.HTML),
		writeFile(std, filepath.Join(dir, runfile.FigureFile), runs.PNG),
	)
}

func announce(std streams, info runfile.Run, dir string) {
	where := info.Target.URL
	if info.Target.Simulated {
		where = "the embedded simulated endpoint (no --url was given)"
	}
	how := fmt.Sprintf("over %v", time.Duration(info.Trace.DurationMS*float64(time.Millisecond)).Round(time.Millisecond))
	if info.Limits.Closed {
		how = fmt.Sprintf("in a closed loop of %d", info.Limits.MaxConcurrency)
	}
	fmt.Fprintf(std.err, "moontide: replaying %d requests %s against %s, model %s\n", info.Rows, how, where, info.Target.Model)
	if n := len(info.Resumed); n > 0 {
		r := info.Resumed[n-1]
		fmt.Fprintf(std.err, "moontide: going on with it: %d requests are in the record, %d were in flight and are sent again\n", r.RowsDone, r.SentAgain)
	}
	for _, note := range info.Notes {
		fmt.Fprintf(std.err, "moontide: note: %s\n", note)
	}
	fmt.Fprintf(std.err, "moontide: recording in %s\n", dir)
}
