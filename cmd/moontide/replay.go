package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report"
	"moontide/replay"
	"moontide/replay/experiment"
	"moontide/replay/openai"
	"moontide/replay/runfile"
)

// Flags of every verb that executes a run.
var (
	maxConcurrencyFlag = &cli.IntFlag{Name: "max-concurrency", Category: inLoad, Usage: "at most `N` requests in flight; later ones wait in the client, and their queue time is measured", DefaultText: "no limit"}
	closedFlag         = &cli.BoolFlag{Name: "closed", Category: inLoad, Usage: "closed loop: ignore the trace's arrivals and always keep --max-concurrency requests, or --max-sessions sessions, in progress"}
	durationFlag       = &cli.DurationFlag{Name: "duration", Category: inRunControl, Usage: "stop sending after `TIME`; requests in flight finish", DefaultText: "no limit"}
	warmupTimeFlag     = &cli.DurationFlag{Name: "warmup-time", Category: inValidity, Usage: "exclude the first `TIME` of the run from the metrics"}
	cooldownTimeFlag   = &cli.DurationFlag{Name: "cooldown-time", Category: inValidity, Usage: "exclude the last `TIME` of the run from the metrics"}
	outFlag            = &cli.StringFlag{Name: "out", Category: inOutput, Usage: "`DIR`: run folder", DefaultText: "a new folder under runs"}
	percentilesFlag    = &cli.StringFlag{Name: "percentiles", Category: inOutput, DefaultText: "99", Usage: "`PERCENTILES`: comma-separated percentiles to show besides mean and median"}
	keepTextFlag       = &cli.BoolFlag{Name: "keep-text", Category: inOutput, Usage: "record text from the trace instead of its SHA-256"}
)

func replayCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Usage: "send a trace's requests at their scheduled times and measure every response",
		Description: "Without --url a simulated endpoint runs in this process; it takes the engine flags of moontide serve. The " +
			"first interrupt stops sending and waits for requests in flight; the second stops immediately. The exit " +
			"status is 3 if the verdict is INVALID.\n\n" +
			gateHelp,
		Flags: append(slices.Concat(endpointFlags(), runFlags(), recordedTraceFlags(), runOutputFlags(), partFlags()),
			&cli.StringFlag{Name: metricsListenFlag, Category: inRunControl, Usage: "serve live Prometheus metrics at /metrics on `ADDRESS`, such as 127.0.0.1:9464", DefaultText: "no metrics"},
			repeatable(cli.GenericFlag{Name: "url", Category: inTarget, Usage: "`URL` of an OpenAI-compatible endpoint, such as http://127.0.0.1:8000; repeatable", DefaultText: "an embedded simulated endpoint"}),
			&cli.StringFlag{Name: "resume", Category: inRunControl, Usage: "continue the stopped or killed run in `DIR`, with its flags as defaults; auto continues the run in --out, or starts a new one"},
		),
		Action: func(c *cli.Context) error { return replayTrace(c, std, stop) },
	}
}

// endpointFlags returns the flags of the verbs that send requests to an
// endpoint.
func endpointFlags() []cli.Flag { return sentFlags(engineFlags()) }

// sentFlags is endpointFlags with given flags of simulated engines.
func sentFlags(engines []cli.Flag) []cli.Flag {
	return append(slices.Concat(requestFlags(), engines),
		&cli.Uint64Flag{Name: "seed", Category: inRequests, Usage: "random seed for prompts and generated arrivals; the same seed sends the same bytes"},
	)
}

// requestFlags returns the flags that have no effect in virtual time.
func requestFlags() []cli.Flag {
	return append(slices.Concat(targetFlags(), serverFlags()),
		&cli.StringFlag{Name: "salt", Category: inRequests, Usage: "`TEXT` that changes the prompts but keeps their shared prefixes, to avoid a warm cache"},
		&cli.DurationFlag{Name: "timeout", Category: inRunControl, Value: openai.DefaultTimeout, Usage: "time limit per request, to the end of its response"},
		&cli.IntFlag{Name: "retry", Category: inRunControl, Usage: "retry requests that got 429 or 503 up to `N` times, after Retry-After or else 1 s, 2 s, 4 s"},
		&cli.IntFlag{Name: "abort-after-errors", Category: inRunControl, Usage: "stop the run after `N` failed requests", DefaultText: "never"},
		&cli.IntFlag{Name: "warmup-requests", Category: inRunControl, Usage: "first send `N` unmeasured requests with the lengths of the trace but different text"},
		&cli.DurationFlag{Name: "wait-ready", Category: inRunControl, Usage: "wait up to `TIME` for the endpoint to become ready"},
		&cli.BoolFlag{Name: "no-chunk-times", Category: inOutput, Usage: "do not record the time of each token chunk (most of a record); ITL then comes from a histogram"},
	)
}

// runFlags returns the flags of every verb that executes a run.
func runFlags() []cli.Flag {
	return append(slices.Concat(thresholdFlags(), gateFlags(""), sessionFlags()), maxConcurrencyFlag, durationFlag, warmupTimeFlag, cooldownTimeFlag, percentilesFlag)
}

// sessionFlags returns the flags for conversations and agents.
func sessionFlags() []cli.Flag {
	return group(inSessions,
		&choiceFlag{
			StringFlag: cli.StringFlag{Name: "answers", Value: openai.AnswersFromTrace, Usage: "`SOURCE` of the earlier answers in later prompts: %s"},
			Choices:    oneOf(openai.AnswerModes()...).Noted(openai.AnswersFromTrace, "made up from block ids, like the rest of the prompt").Noted(openai.LiveAnswers, "what the server generated; prompts keep the lengths of the trace"),
		},
		&cli.IntFlag{Name: "max-sessions", Usage: "at most `N` sessions in progress; the next one starts when one ends; an agent and its sub-agents are one session", DefaultText: "no limit"},
		&cli.IntFlag{Name: "max-turns", Usage: "end sessions after `N` turns", DefaultText: "no limit"},
		&cli.DurationFlag{Name: "cancel-after", Usage: "abandon requests that are not complete `TIME` after they were sent, like a user who gives up; dependent requests are not sent", DefaultText: "never"},
	)
}

// recordedTraceFlags returns the flags of the verbs that run a recorded trace.
func recordedTraceFlags() []cli.Flag {
	return append(slices.Concat(pacingFlags(), formatFlags(inTraceInput)),
		closedFlag, outFlag, keepTextFlag, blockSizeFlag, skipBadRowsFlag)
}

func replayTrace(c *cli.Context, std streams, stop stop) error {
	path, err := one(c, "TRACE")
	if err != nil {
		return err
	}
	resumed, err := resumeFlags(c, std, path)
	if err != nil {
		return err
	}
	cfg, err := replayConfig(c, std, stop)
	if err != nil {
		return err
	}
	if cfg.Resume = resumed != ""; cfg.Resume {
		cfg.Dir = resumed
	}
	follows, err := follows(c)
	if err != nil {
		return err
	}
	if follows {
		cfg.Observer = experiment.Observer{}
	}
	return runTrace(c, std, stop, path, cfg)
}

// runOutputFlags returns the flags for the results of one run or of several.
func runOutputFlags() []cli.Flag {
	return outputFlags(oneOf(words("json markdown csv html png junit")...).
		Noted("json", "verdict, gates and metrics").Noted("junit", "verdict and gates as XML"))
}

// runTrace replays the trace at path and reports.
func runTrace(c *cli.Context, std streams, stop stop, path string, cfg experiment.Config) (err error) {
	view, _, err := viewOf(c)
	if err != nil {
		return err
	}
	out, err := outputsOf(c)
	if err != nil {
		return err
	}
	remove, err := setTrace(c, std, path, &cfg)
	if err != nil {
		return err
	}
	defer remove()
	if cfg.Part, err = partConfig(c, std, path); err != nil {
		return err
	}
	if err := cfg.Check(); err != nil {
		return runError(c, err)
	}
	if address := c.String(metricsListenFlag); address != "" {
		server, err := serveLive(std, address, &cfg.Observer)
		if err != nil {
			return err
		}
		defer server.Close()
	}
	leave, err := joinRun(c, stop, &cfg)
	if err != nil {
		return err
	}
	if cfg.Dir == "" {
		cfg.Dir = experiment.NewFolder("runs", baseName(path))
	}
	result, err := experiment.Run(stop.now, cfg)
	leave(err)
	switch {
	case result == nil:
		return runError(c, ofCopy(err, cfg.Trace.Path, path))
	case cfg.Member != nil && !cfg.Member.Leads():
		sayPart(std, cfg.Member, result)
		return err
	}
	if errors.Is(err, experiment.ErrStopped) && !cfg.Virtual && path != "-" && cfg.Member == nil {
		err = fmt.Errorf("%w; to continue: moontide replay %s --resume %s", err, path, cfg.Dir)
	}
	if err := errors.Join(err, present(std, result, view, out)); err != nil {
		return err
	}
	return outcomeOf(report.Runs{reported(result, view)})
}

// setTrace sets the trace of a run and its pacing. The caller calls remove after the run.
func setTrace(c *cli.Context, std streams, path string, cfg *experiment.Config) (remove func(), err error) {
	if cfg.Pacing, err = pacingOf(c); err != nil {
		return nil, err
	}
	cfg.Trace.Format = formatOptions(c)
	cfg.Trace.BlockSize = c.Int(blockSizeFlag.Name)
	files, remove, err := spoolTraces(std, path)
	if err != nil {
		return nil, err
	}
	cfg.Trace.Path, cfg.Trace.Name = files[0], traceName(path)
	return remove, nil
}

// runError phrases the error of a run that did not start in terms of flags.
func runError(c *cli.Context, err error) error {
	var wrong *experiment.ConfigError
	switch {
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.As(err, &wrong) && wrong.Field != "":
		return misused("%s: --%s %w", c.Command.Name, flagName(wrong.Field), wrong.Err)
	case errors.As(err, &wrong):
		return misused("%s: %w", c.Command.Name, err)
	}
	return err
}

func replayConfig(c *cli.Context, std streams, stop stop) (cfg experiment.Config, err error) {
	if cfg, err = drivenConfig(c, std, stop); err != nil {
		return cfg, err
	}
	name := firstGiven(c, engineFlags())
	switch embedded := len(textsOf(c, "url")) == 0; {
	case !embedded && name != "":
		return cfg, misused("%s: --%s is for the embedded endpoint, which --url replaces", c.Command.Name, name)
	case name != "":
		cfg.Engines, cfg.EngineFile, err = deploymentOf(c)
	}
	return cfg, err
}

// drivenConfig parses the flags of a run against an endpoint, except those of simulated
// engines.
func drivenConfig(c *cli.Context, std streams, stop stop) (cfg experiment.Config, err error) {
	cfg = runConfig(c, std, stop)
	if cfg.Client, err = clientConfig(c); err != nil {
		return cfg, err
	}
	cfg.Tokenizer, cfg.Dataset = c.String("tokenizer"), c.String("dataset")
	cfg.Salt, cfg.NoChunkTimes = c.String("salt"), c.Bool("no-chunk-times")
	cfg.MaxErrors, cfg.Retries, cfg.WarmupRequests = c.Int("abort-after-errors"), c.Int("retry"), c.Int("warmup-requests")
	cfg.WaitReady = c.Duration("wait-ready")
	cfg.CalibrationFile = calibrationFile()
	if cfg.ServerMetrics, err = serverMetrics(c); err != nil {
		return cfg, err
	}
	cfg.ServerBlockSize = c.Int(serverBlockSizeFlag.Name)
	leaveRoomForThreads()
	cfg.Observer = newView(std, stop).observer()
	return cfg, nil
}

// runConfig parses the flags of every verb that executes a run.
func runConfig(c *cli.Context, std streams, stop stop) (cfg experiment.Config) {
	cfg.Seed, cfg.Dir, cfg.KeepText = c.Uint64("seed"), c.String(outFlag.Name), c.Bool(keepTextFlag.Name)
	cfg.MaxConcurrency, cfg.Closed, cfg.Duration = c.Int(maxConcurrencyFlag.Name), c.Bool(closedFlag.Name), c.Duration(durationFlag.Name)
	cfg.Window, cfg.CacheGenerated = windowOf(c, runfile.Window{}), c.Bool("cache-generated")
	cfg.Sessions = replay.SessionLimits{Open: c.Int("max-sessions"), Turns: c.Int("max-turns")}
	cfg.Thresholds = thresholdsOf(c, runfile.Thresholds{})
	cfg.Version, cfg.Command, cfg.Flags = version(), maskedCommand(), setFlags(c)
	cfg.Drain = stop.gently.Done()
	cfg.Observer.Message = func(text string) { std.say("%s", text) }
	return cfg
}

// present saves the summary and page of a run before it prints the results: the output may
// end early, as in "| head".
func present(std streams, result *experiment.Result, view report.View, out outputs) error {
	std.sayAll("%s", result.Damaged)
	runs := report.Runs{reported(result, view)}
	saved := saveReports(std, result, view)
	shown := resultsOf(runs)
	shown.forms["json"] = runs.WriteOutcome
	std.say("the run is in %s", result.Dir)
	return errors.Join(saved, out.show(std, shown))
}

func reported(result *experiment.Result, view report.View) report.Run {
	return report.Run{Name: filepath.Base(result.Dir), Dir: result.Dir, Info: result.Run, Result: result.Metrics, View: view}
}

func saveReports(std streams, result *experiment.Result, view report.View) error {
	r := reported(result, view)
	return errors.Join(
		runfile.WriteJSON(filepath.Join(result.Dir, runfile.SummaryFile), r.Summary()),
		writeFile(std, filepath.Join(result.Dir, runfile.PageFile), report.Runs{r}.Document().WriteHTML),
	)
}

func announce(std streams, s experiment.Started) {
	info := s.Run
	where := info.Target.URL
	if info.Target.Simulated {
		where = "the embedded simulated endpoint (no --url)"
	}
	how := fmt.Sprintf("over %v", replay.Milliseconds(info.Trace.DurationMS).Round(time.Millisecond))
	switch {
	case info.Trace.AtOnce:
		how = "all at once"
	case info.Limits.Closed && info.Limits.MaxConcurrency > 0:
		how = fmt.Sprintf("in a closed loop of %d", info.Limits.MaxConcurrency)
	case info.Limits.Closed:
		how = "as soon as possible"
	}
	if s.Parts > 0 {
		how += fmt.Sprintf(" in %d parts", s.Parts)
	}
	std.say("replaying %d requests %s against %s, model %s", s.Plan.Rows, how, where, info.Target.ModelText())
	if n := len(info.Resumed); n > 0 {
		r := info.Resumed[n-1]
		std.say("resuming: %d requests are in the record, %d were in flight and are sent again", r.RowsDone, r.SentAgain)
	}
	for _, note := range info.Notes {
		std.say("note: %s", note)
	}
	std.say("recording in %s", s.Dir)
}
