package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/replay"
	"moontide/replay/cluster"
	"moontide/replay/evidence"
	"moontide/replay/experiment"
	"moontide/replay/live"
	"moontide/replay/runfile"
	"moontide/replay/secret"
	"moontide/replay/settings"
	"moontide/replay/sim/fit"
)

const (
	resumeFlag = "resume"
	autoResume = "auto" // the value of --resume that starts a run, or continues it if it was stopped or killed
)

// outFlag is the flag for the file or folder of the results.
var outFlag = &cli.StringFlag{Name: "out", Category: inOutput, Usage: "`DIR`: run folder", DefaultText: "a new folder under runs"}

func replayCommand(std streams, stop stop) *cli.Command {
	d, flags := newCommandLine(nil, func(row *settings.Setting) bool {
		few := slices.Contains(words("engine engines routing"), row.Name)
		return !row.File && row.Group != settings.Descriptions && (row.Group != settings.Engine || few)
	})
	return &cli.Command{
		Usage: "send a trace's requests at their scheduled times and measure every response",
		Description: "Without --url a simulated endpoint runs in this process. The first interrupt stops sending and waits for " +
			"requests in flight; the second stops immediately. The exit status is 3 if the verdict is INVALID.\n\n" +
			"Everything else that can be set of a run, such as the simulated engines, is a setting of --config FILE or --set " +
			"NAME=VALUE. --config runs/x/run.json repeats a run: the same requests at the same times.\n\n" +
			gateHelp,
		Flags: append(slices.Concat(flags, fileFlags(), runOutputFlags()),
			&cli.StringFlag{Name: resumeFlag, Category: inRunControl, Usage: "continue the stopped or killed run in `DIR`, with its settings; auto continues the run in --out, or starts a new one"},
		),
		Action: func(c *cli.Context) error { return replayTrace(c, std, stop, d) },
	}
}

// runOutputFlags are the flags for forms of the results of runs.
func runOutputFlags() []cli.Flag {
	return outputFlags(oneOf(words("json markdown csv html png junit")...).
		Noted("csv", "a line per run").
		Noted("junit", "verdict and gates as XML"))
}

func replayTrace(c *cli.Context, std streams, stop stop, d *commandLine) error {
	if err := d.complete(c); err != nil {
		return err
	}
	cfg := experiment.Config{}
	if c.NArg() == 1 { // it names the folder of a part
		if err := d.Settings.Set("trace", c.Args().First(), "the argument"); err != nil {
			return err
		}
	}
	var err error
	if cfg.Resume, err = resume(c, std, d); err != nil { // its run has a trace
		return err
	}
	remove, err := setTrace(c, std, d, &cfg)
	if err != nil {
		return err
	}
	defer remove()
	return runTrace(c, std, stop, d, cfg)
}

// setTrace sets the trace of a run: the argument, or that of the settings. The caller calls
// remove after the run.
func setTrace(c *cli.Context, std streams, d *commandLine, cfg *experiment.Config) (remove func(), err error) {
	remove = func() {}
	switch c.NArg() {
	case 0:
		if d.Trace.Path == "" && !d.Described() {
			return nil, misused("missing argument: TRACE")
		}
	default:
		path, err := one(c, "TRACE")
		if err != nil {
			return nil, err
		}
		if err := d.Settings.Set("trace", path, "the argument"); err != nil {
			return nil, err
		}
	}
	path := d.Trace.Path
	if path == "" {
		return remove, nil
	}
	files, remove, err := spoolTraces(std, path)
	if err != nil {
		return nil, err
	}
	if cfg.Name = traceName(path); files[0] != path {
		cfg.Copy = files[0]
	}
	return remove, nil
}

// configure completes the configuration of runs with the settings.
func configure(c *cli.Context, std streams, stop stop, d *commandLine, cfg *experiment.Config) error {
	if err := d.Settings.Check(); err != nil {
		return d.misuse(err)
	}
	if err := resolve(c, &d.Settings); err != nil {
		return err
	}
	if _, err := evidence.New(d.ServerMetrics, nil); err != nil {
		return misused("--server-metrics: %w", err)
	}
	cfg.Settings = d.Settings
	cfg.Version, cfg.Command, cfg.CalibrationFile = version(), maskedCommand(), calibrationFile()
	cfg.Drain = stop.gently.Done()
	cfg.Observer.Message = func(text string) { std.say("%s", text) }
	if !cfg.Virtual {
		leaveRoomForThreads()
		cfg.Observer = newView(std, stop).observer()
		return nil
	}
	if d.EngineFile == "" {
		return nil
	}
	var err error
	if d.file, err = fit.ReadFile(d.EngineFile); err != nil {
		return err
	}
	if text := experiment.HeldOutErrors(d.file); text != "" {
		std.say("%s", text)
	}
	return nil
}

// runTrace executes a run and reports.
func runTrace(c *cli.Context, std streams, stop stop, d *commandLine, cfg experiment.Config) (err error) {
	view, err := viewOf(c, &d.Settings)
	if err != nil {
		return err
	}
	out, err := outputsOf(c)
	if err != nil {
		return err
	}
	if err := configure(c, std, stop, d, &cfg); err != nil {
		return err
	}
	part, err := partOf(c, std, d)
	if err != nil {
		return err
	}
	if err := cfg.Check(); err != nil {
		return d.misuse(err)
	}
	if part != nil && part.Number > 1 { // part 1 shows the progress
		cfg.Observer = experiment.Observer{}
	}
	if address := cfg.Output.MetricsListen; address != "" {
		server, err := serveLive(std, address, &cfg.Observer)
		if err != nil {
			return err
		}
		defer server.Close()
	}
	leave, err := joinRun(stop, part, &cfg)
	if err != nil {
		return err
	}
	if cfg.Output.Dir == "" {
		cfg.Output.Dir = experiment.NewFolder("runs", baseName(cfg.Trace.Path))
	}
	result, err := experiment.Run(stop.now, cfg)
	leave(err)
	switch {
	case result == nil:
		return d.ended(err)
	case cfg.Part != nil && !cfg.Part.Leads():
		sayPart(std, cfg.Part, result)
		return err
	}
	if errors.Is(err, experiment.ErrStopped) && !cfg.Virtual && cfg.Trace.Path != "-" && cfg.Part == nil {
		err = fmt.Errorf("%w; to continue: moontide replay %s --resume %s", err, cfg.Trace.Path, cfg.Output.Dir)
	}
	if err := errors.Join(err, present(std, result, view, out)); err != nil {
		return err
	}
	return outcomeOf(report.Runs{reported(result, view)})
}

// ended phrases the error of a run that did not start.
func (d *commandLine) ended(err error) error {
	return d.misuse(endedBy(err))
}

// endedBy returns the error of an interrupt without what was interrupted.
func endedBy(err error) error {
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	return err
}

// resumeFolder returns the folder of the run that --resume continues, or "".
func resumeFolder(c *cli.Context, std streams, d *commandLine) (dir string, err error) {
	switch dir = c.String(resumeFlag); {
	case !c.IsSet(resumeFlag):
		return "", nil
	case dir != autoResume && d.Output.Dir != "":
		return "", misused("--resume continues in the run's folder: omit --out")
	case d.Parts.Part != "":
		part, err := partOf(c, std, d)
		if err != nil {
			return "", err
		}
		dir = part.Folder()
	case dir != autoResume:
		return dir, nil
	default:
		if dir = d.Output.Dir; dir == "" {
			return "", misused("--resume auto needs --out, the folder of the run")
		}
	}
	if _, err := os.Stat(filepath.Join(dir, runfile.RunFile)); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return dir, nil
}

// resume takes the settings of the run that --resume names, and reports whether there is one.
// Settings of the command line must have the same values.
func resume(c *cli.Context, std streams, d *commandLine) (bool, error) {
	dir, err := resumeFolder(c, std, d)
	if dir == "" || err != nil {
		return false, err
	}
	earlier, err := experiment.Resumable(dir)
	if err != nil {
		return false, err
	}
	var others []string
	for _, difference := range settings.Differences(&earlier.Settings, &d.Settings) {
		switch {
		case difference.B == "":
			if secret.Masked(difference.A) {
				return false, misused("--resume %s: pass %s again: run folders do not store values that may be secret", dir, difference.Name)
			}
		case difference.Name != "trace":
			others = append(others, difference.String())
		}
	}
	if others != nil {
		return false, misused("--resume %s: %s", dir, strings.Join(others, "; "))
	}
	d.Settings.Adopt(&earlier.Settings, dir)
	if d.Parts.Part == "" {
		d.Output.Dir = dir
	}
	return true, nil
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
	case info.Settings.AtOnce():
		how = "all at once"
	case info.Settings.Closed && info.Settings.MaxConcurrency > 0:
		how = fmt.Sprintf("in a closed loop of %d", info.Settings.MaxConcurrency)
	case info.Settings.Closed:
		how = "as soon as possible"
	}
	if s.Parts > 0 {
		how += fmt.Sprintf(" in %d parts", s.Parts)
	}
	std.say("replaying %d requests %s against %s, model %s", s.Plan.Rows, how, where, info.ModelText())
	if n := len(info.Resumed); n > 0 {
		r := info.Resumed[n-1]
		std.say("resuming: %d requests are in the record, %d were in flight and are sent again", r.RowsDone, r.SentAgain)
	}
	for _, note := range info.Notes {
		std.say("note: %s", note)
	}
	std.say("recording in %s", s.Dir)
}

// serveLive serves the metrics of the observed runs.
func serveLive(std streams, address string, o *experiment.Observer) (*live.Server, error) {
	metrics := live.NewMetrics()
	server, err := live.Listen(address, metrics)
	if err != nil {
		return nil, err
	}
	std.say("metrics for Prometheus: http://%s/metrics", server.Address())
	start, record := o.Start, o.Record
	o.Start = func(s experiment.Started) {
		metrics.Start(live.Run{
			Name: filepath.Base(s.Dir), Trace: s.Run.Trace.Name, Model: s.Run.ModelText(), Rows: s.Run.Rows, Status: s.Status,
			Verdict: func(lag, ttft time.Duration) string {
				return measure.LatenessSoFar(lag, ttft, s.Run.Settings.Thresholds).String()
			},
		})
		if start != nil {
			start(s)
		}
	}
	o.Record = func(rec replay.Record) {
		metrics.Record(rec)
		if record != nil {
			record(rec)
		}
	}
	return server, nil
}

// joinRun joins the run of which this process is a part. leave must be called with the
// error of the run. If it is no part, it does nothing.
func joinRun(stop stop, m *cluster.Config, cfg *experiment.Config) (leave func(error), err error) {
	joined := func(error) {}
	if m == nil {
		return joined, nil
	}
	m.Version, cfg.Output.Dir = cfg.Version, m.Dir
	var unsuitable error
	if m.Number == 1 && !cfg.Resume { // before the others make folders in it
		unsuitable = runfile.CheckFolder(m.Dir)
	}
	if cfg.Part, err = cluster.Join(stop.gently, *m); err != nil {
		return joined, err
	}
	if unsuitable != nil { // for all parts
		cfg.Part.Close(unsuitable)
		return joined, unsuitable
	}
	return cfg.Part.Close, nil
}
