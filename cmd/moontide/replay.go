package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report"
	"moontide/analyze/serving"
	"moontide/replay"
	"moontide/replay/openai"
	"moontide/replay/prompt"
)

func replayCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Name:      "replay",
		Usage:     "send a trace's requests at their times and measure every answer",
		ArgsUsage: "TRACE",
		Description: "Without --url the simulated endpoint is started in this process and driven. The first\n" +
			"interrupt stops sending and waits for what is in flight, the second ends at once.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "url", Usage: "`URL` of an OpenAI-compatible endpoint, such as http://127.0.0.1:8000"},
			&cli.StringFlag{Name: "model", Usage: "model to ask for; the only one that the endpoint serves may be left out"},
			&cli.StringFlag{Name: "endpoint", Value: openai.Completions, Usage: "completions or chat"},
			&cli.StringFlag{Name: "prompt", Usage: "tokens (ids, exact) or words (one token each); default: tokens on completions, words on chat"},
			&cli.Float64Flag{Name: "speedup", Value: 1, Usage: "replay `X` times as fast as the trace"},
			&cli.IntFlag{Name: "limit", Usage: "replay the first `N` rows"},
			&cli.IntFlag{Name: "max-concurrency", Usage: "at most `N` requests in flight; what is due waits, and the wait is measured"},
			&cli.DurationFlag{Name: "timeout", Value: openai.DefaultTimeout, Usage: "most time for one request, to the end of its answer"},
			&cli.Uint64Flag{Name: "seed", Usage: "chooses the prompts; the same seed sends the same bytes"},
			&cli.StringFlag{Name: "salt", Usage: "chooses other prompts of the same sharing, so that a warm cache of an earlier run does not help"},
			&cli.StringFlag{Name: "out", Usage: "`DIR` for the run's folder; default: a new one under runs"},
			&cli.StringSliceFlag{Name: "header", Usage: "'Name: value' sent with every request; may be given often"},
			&cli.StringFlag{Name: "api-key-env", Usage: "environment `VARIABLE` that holds the API key"},
			&cli.BoolFlag{Name: "keep-text", Usage: "keep texts of the trace in the record instead of their digests"},
			blockSizeFlag, skipBadRowsFlag,
		},
		Action: func(c *cli.Context) error { return replayTrace(c, std, stop) },
	}
}

// replayTrace prepares everything that can fail before it starts, replays,
// and reports from the run's folder.
func replayTrace(c *cli.Context, std streams, stop stop) error {
	path, err := one(c, "a trace")
	if err != nil {
		return err
	}
	if err := checkReplayFlags(c); err != nil {
		return err
	}
	file, remove, err := spoolTrace(std, path)
	if err != nil {
		return err
	}
	defer remove()
	in, err := inspect(stop.gently, c, std, file)
	if err != nil {
		return err
	}
	in.name = traceName(path)
	dir := c.String("out")
	if dir == "" {
		dir = freeFolder(filepath.Join("runs", time.Now().Format("20060102-150405")+"-"+baseName(path)))
	}
	if err := replay.CheckFolder(dir); err != nil {
		return err
	}
	client, run, end, err := connect(c, std, stop, in)
	if err != nil {
		return err
	}
	defer end()
	return drive(c, std, stop, in, client, run, dir)
}

// freeFolder is dir, or dir-2 and so on if a run of the same second has it.
func freeFolder(dir string) string {
	free := dir
	for i := 2; replay.CheckFolder(free) != nil && i < 1000; i++ {
		free = fmt.Sprintf("%s-%d", dir, i)
	}
	return free
}

func checkReplayFlags(c *cli.Context) error {
	speedup := c.Float64("speedup")
	switch {
	case !(speedup > 0) || math.IsInf(speedup, 0):
		return misused("replay: --speedup is not a positive number: %v", speedup)
	case c.IsSet("limit") && c.Int("limit") < 1:
		return misused("replay: --limit is not a positive number: %d", c.Int("limit"))
	case c.IsSet("max-concurrency") && c.Int("max-concurrency") < 1:
		return misused("replay: --max-concurrency is not a positive number: %d", c.Int("max-concurrency"))
	case c.Duration("timeout") <= 0:
		return misused("replay: --timeout is not a positive time: %v", c.Duration("timeout"))
	}
	return checkBlockSize(c)
}

// connect finds the endpoint, or starts the embedded one, and settles with it
// what requests look like.
func connect(c *cli.Context, std streams, stop stop, in input) (*openai.Client, replay.Run, func(), error) {
	fail := func(err error) (*openai.Client, replay.Run, func(), error) { return nil, replay.Run{}, nil, err }
	cfg, err := clientConfig(c, in)
	if err != nil {
		return fail(err)
	}
	simulated := cfg.URL == ""
	endServer := func() {}
	if simulated {
		if cfg.URL, endServer, err = embed(); err != nil {
			return fail(err)
		}
	}
	client, err := openai.New(cfg)
	if err != nil {
		endServer()
		return fail(misused("replay: %w", err))
	}
	end := func() { client.Close(); endServer() }
	notes, err := client.Probe(stop.gently)
	if err != nil {
		end()
		if stop.gently.Err() != nil {
			err = errors.New("interrupted")
		}
		return fail(err)
	}
	run := replay.Run{
		Version: version(), Command: maskedCommand(),
		Host: replay.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()},
		Target: replay.Target{
			URL: client.Target(), Model: client.Model(), Endpoint: client.Endpoint(), Prompt: client.PromptForm(),
			Simulated: simulated, IgnoreEOS: client.IgnoresEOS(),
		},
		Trace: replay.Source{
			Name: in.name, SHA256: in.sha256, DurationMS: in.plan.DurationMS, BlockSize: in.blockSize.Tokens,
			Speedup: c.Float64("speedup"), Limit: c.Int("limit"),
		},
		Seed: cfg.Source.Seed, Salt: cfg.Source.Salt,
		Limits: replay.Limits{MaxConcurrency: c.Int("max-concurrency"), TimeoutSeconds: cfg.Timeout.Seconds()},
		Rows:   in.plan.Rows, Schedule: in.plan.Schedule,
		Notes: append(in.notes(), notes...),
	}
	return client, run, end, nil
}

func clientConfig(c *cli.Context, in input) (openai.Config, error) {
	cfg := openai.Config{
		URL: c.String("url"), Model: c.String("model"), Endpoint: c.String("endpoint"), Prompt: c.String("prompt"),
		Timeout: c.Duration("timeout"),
		Source:  prompt.Source{Seed: c.Uint64("seed"), Salt: c.String("salt"), BlockSize: in.blockSize.Tokens},
	}
	if c.IsSet("url") && cfg.URL == "" {
		return cfg, misused("replay: --url is empty")
	}
	for _, h := range c.StringSlice("header") {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return cfg, misused("replay: --header is not 'Name: value': %q", name)
		}
		cfg.Headers = append(cfg.Headers, openai.Header{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)})
	}
	if variable := c.String("api-key-env"); variable != "" {
		if cfg.APIKey = os.Getenv(variable); cfg.APIKey == "" {
			return cfg, misused("replay: the environment variable %s of --api-key-env is not set", variable)
		}
	}
	return cfg, nil
}

// maskedCommand is the command line without what may be secret.
func maskedCommand() []string {
	masked := append([]string{"moontide"}, os.Args[1:]...)
	for i, arg := range masked {
		flag, value, joined := strings.Cut(arg, "=")
		switch {
		case strings.TrimLeft(flag, "-") != "header" || !strings.HasPrefix(flag, "-"):
		case joined:
			masked[i] = flag + "=" + maskedHeader(value)
		case i+1 < len(masked):
			masked[i+1] = maskedHeader(masked[i+1])
		}
	}
	return masked
}

func maskedHeader(header string) string {
	name, _, _ := strings.Cut(header, ":")
	return name + ": ***"
}

// drive is the run itself.
func drive(c *cli.Context, std streams, stop stop, in input, client *openai.Client, run replay.Run, dir string) error {
	run.Started = time.Now()
	folder, err := replay.CreateFolder(dir, run)
	if err != nil {
		return err
	}
	folder.KeepText = c.Bool("keep-text")
	announce(std, run, dir)
	runner := &replay.Runner{
		Client: client, Recorder: folder,
		MaxConcurrency: run.Limits.MaxConcurrency,
		Drain:          stop.gently.Done(),
	}
	reader, err := openTrace(c, std, in.path)
	if err != nil {
		return err
	}
	defer reader.Close()
	endProgress := progress(std.err, runner, in.plan)
	unhook := context.AfterFunc(stop.gently, func() {
		fmt.Fprintf(std.err, "\nmoontide: no more is sent; waiting for %d in flight, interrupt again to end at once\n", runner.Status().InFlight)
	})
	tally, runErr := runner.Run(stop.now, in.shape(reader.Requests()))
	unhook()
	endProgress()

	run.Started, run.Ended = tally.Start, time.Now()
	run.Sent, run.NotSent = tally.Sent, run.Rows-tally.Sent
	run.Stopped = tally.Stopped && run.NotSent > tally.Skipped
	run.Prompts = client.PromptDigest()
	if read := tally.Sent + tally.Skipped; runErr == nil && !tally.Stopped && read != run.Rows {
		runErr = fmt.Errorf("the trace changed while it was replayed: it had %d rows, and then %d", run.Rows, read)
	}
	if tally.Unrecorded > 0 {
		runErr = fmt.Errorf("%w: %d requests that ended are not in the record", runErr, tally.Unrecorded)
	}
	if runErr != nil {
		run.Failure = runErr.Error()
	}
	// Whatever went wrong, what was measured is shown.
	return errors.Join(runErr, folder.Close(), folder.WriteRun(run), conclude(std, dir, run))
}

// conclude measures the run from its folder and prints what it was. The run
// itself is as it is known here: a full disk may have kept the folder's old.
func conclude(std streams, dir string, run replay.Run) error {
	_, result, err := measure(std, dir)
	if err != nil {
		return err
	}
	if err := report.ServingText(std.out, run, result); err != nil {
		return err
	}
	fmt.Fprintf(std.out, "Run folder: %s\n", dir)
	if err := replay.WriteJSON(filepath.Join(dir, replay.SummaryFile), report.Summary(run, result)); err != nil {
		return err
	}
	switch {
	case run.Failure != "": // said already
		return nil
	case run.Stopped:
		return errors.New("the run was stopped before the trace's end")
	case result.Completed == 0:
		return errors.New("no request succeeded")
	case result.Verdict.Level == serving.Invalid:
		return errInvalid
	}
	return nil
}

func announce(std streams, run replay.Run, dir string) {
	where := run.Target.URL
	if run.Target.Simulated {
		where = "the embedded simulated endpoint (no --url was given)"
	}
	fmt.Fprintf(std.err, "moontide: replaying %d requests over %v against %s, model %s\n",
		run.Rows, time.Duration(run.Trace.DurationMS*float64(time.Millisecond)).Round(time.Millisecond), where, run.Target.Model)
	for _, note := range run.Notes {
		fmt.Fprintf(std.err, "moontide: note: %s\n", note)
	}
	fmt.Fprintf(std.err, "moontide: recording in %s\n", dir)
}
