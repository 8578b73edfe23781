package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report"
	"moontide/analyze/report/doc"
	"moontide/replay/evidence"
	"moontide/replay/experiment"
	"moontide/replay/openai"
	"moontide/replay/runfile"
	"moontide/replay/secret"
	"moontide/replay/settings"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
)

// Flags of fit-engine only.
const (
	tableFlag   = "table"
	refitFlag   = "refit-prefill"
	longISLFlag = "long-isl"
	mostFlag    = "max-concurrency"

	engineForm = "engine"
)

func fitEngineCommand(std streams, stop stop) *cli.Command {
	d, flags := newCommandLine(nil, func(row *settings.Setting) bool {
		switch row.Group {
		case settings.Engine:
			return isLayout(row)
		case settings.Target, settings.Requests:
			return !row.File
		}
		return slices.Contains(words("timeout wait-ready verdict server-metrics out"), row.Name)
	})
	return &cli.Command{
		Usage: "fit simulated engines to measurements of a server",
		Description: "Measurements are run folders of replay or bench, a CSV file with --table, or those that --url makes: about a " +
			"dozen runs, which take minutes. To continue them, run the same command with the same --out.\n\n" +
			"Measure each load with a cold cache. INVALID runs, runs with a warm cache and inconsistent rows are listed " +
			"but not used. If too few are left, nothing is written.\n\n" +
			"The columns of a table are isl, osl, concurrency or rate (requests/s), metrics such as output_throughput and " +
			"mean_ttft_ms, and optionally prompts (the number of requests), mean_output_tokens and deployment.",
		Flags:  slices.Concat(flags, fitFlags()),
		Action: func(c *cli.Context) error { return fitEngine(c, std, stop, d) },
	}
}

func fitFlags() []cli.Flag {
	return append(group(inFit,
		&cli.StringFlag{Name: tableFlag, Usage: "CSV `FILE` of measurements"},
		&cli.BoolFlag{Name: refitFlag, Usage: "keep the costs of decoding of --engine and fit only those of prompts, transfers and requests: two measurements are enough, at a low and a high load"},
		repeatable(cli.GenericFlag{Name: setFlag, Usage: "`NAME=VALUE`: with --url, set a setting that has no flag; repeatable"}),
		&cli.IntFlag{Name: longISLFlag, Value: 2048, Usage: "with --url, longest prompt in tokens"},
		&cli.IntFlag{Name: mostFlag, Value: 128, Usage: "with --url, at most `N` requests in flight"},
	), outputFlags(oneOf(append(words("markdown csv html png"), engineForm)...).
		Noted(engineForm, "the engine file, for which -o FILE is short"))...)
}

// isLayout reports whether a setting of engines is not fitted: a number, or a switch of an
// engine.
func isLayout(row *settings.Setting) bool {
	if row.Name == "engine" {
		return true
	}
	p, ok := engine.FindParameter(row.Name)
	if !ok {
		return false
	}
	switch p.Field(new(engine.Deployment)).(type) {
	case *int:
		return true
	case *bool:
		return p.OfEngine != nil
	}
	return false
}

func fitEngine(c *cli.Context, std streams, stop stop, d *commandLine) error {
	if err := d.complete(c); err != nil {
		return err
	}
	out, err := outputsOf(c)
	if err != nil {
		return err
	}
	options, err := d.fitOptions(c)
	if err != nil {
		return err
	}
	in, err := fitInput(c, std, stop, d)
	if err != nil {
		return err
	}
	if err := in.complete(&options); err != nil {
		return err
	}
	std.say("fitting %s", doc.Count(len(in.measurements), "measurement"))
	result, err := fit.Fit(stop.gently, in.measurements, options)
	var refused *fit.RefusedError
	if errors.As(err, &refused) {
		shown := report.EngineFit{Subject: in.subject, Refused: true, Result: &fit.Result{Rows: slices.Concat(refused.Rows, in.excluded)}}
		out = slices.DeleteFunc(out, func(o output) bool { return o.path != "" })
		return errors.Join(out.show(std, results{document: shown.Document}), err)
	}
	if err != nil {
		return in.explain(std, err)
	}
	result.Rows = append(result.Rows, in.excluded...)
	result.Fitted.Excluded += len(in.excluded)
	result.Fitted.Provenance = in.provenance
	return writeFit(std, out, report.EngineFit{Subject: in.subject, Result: result})
}

// writeFit writes the engine file and shows the report.
func writeFit(std streams, out outputs, shown report.EngineFit) error {
	engines := fit.File{Deployment: shown.Deployment, Fit: &shown.Fitted}
	std.say("%s", report.EngineFitLine(shown.Result))
	err := out.show(std, results{shown.Document, map[string]func(io.Writer) error{engineForm: engines.Write}})
	for _, o := range out {
		if err == nil && o.form == engineForm && o.path != "" {
			std.say("engine written to %s: use it with --engine", o.path)
		}
	}
	return err
}

// fitOptions returns the options of the fit: the deployment has only what was set.
func (d *commandLine) fitOptions(c *cli.Context) (options fit.Options, err error) {
	options.Seed, options.Refit = d.Seed, c.Bool(refitFlag)
	if d.EngineFile != "" {
		file, err := fit.ReadFile(d.EngineFile)
		if err != nil {
			return options, err
		}
		options.Template = file.Deployment
	}
	seed := options.Template.Seed
	if options.Template, err = d.Deployment(options.Template); err != nil {
		return options, d.misuse(err)
	}
	options.Template.Seed = seed
	if options.Refit && d.EngineFile == "" {
		return options, misused("--refit-prefill needs --engine: the file with the costs of decoding")
	}
	return options, nil
}

// fitData are the measurements that an engine is fitted to.
type fitData struct {
	subject      string
	measurements []fit.Measurement
	excluded     []fit.Row // unfit ones
	invalid      bool      // some are INVALID
	provenance   fit.Provenance
	blockSize    int // by the server's metrics, 0 is unknown
	kvTokens     int
}

// fitInput reads or makes the measurements.
func fitInput(c *cli.Context, std streams, stop stop, d *commandLine) (*fitData, error) {
	table, live, runs := c.IsSet(tableFlag), len(d.Client.URLs) > 0, c.NArg() > 0
	switch {
	case !table && !live && !runs:
		return nil, misused("name run folders, or give --table FILE or --url URL")
	case table && live, table && runs, live && runs:
		return nil, misused("run folders, --table and --url: choose one")
	case len(d.Client.URLs) > 1:
		return nil, misused("--url: measure one endpoint; for several engines, that of their router, with --engines N")
	}
	if !live {
		if name := firstGivenOf(c, longISLFlag, mostFlag); name != "" {
			return nil, misused("--%s is for measuring with --url", name)
		}
		for name := range d.Given() {
			if row := settings.Find(name); row.Mode == settings.Live || row.Group == settings.Requests && name != "seed" {
				return nil, misused("--%s is for measuring with --url", name)
			}
		}
	}
	switch {
	case table:
		return fitTable(c, std)
	case live:
		return fitURL(c, std, stop, d)
	}
	if name := c.Args().First(); strings.HasSuffix(name, ".csv") {
		return nil, misused("%s is a table: use --table %[1]s", name)
	}
	return fitRuns(std, c.Args().Slice())
}

// fitTable reads a CSV table.
func fitTable(c *cli.Context, std streams) (*fitData, error) {
	path := c.String(tableFlag)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the table: %w", err)
	}
	table, err := fit.ReadTable(strings.NewReader(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(table.Ignored) > 0 {
		std.say("%s: ignored columns: %s", path, strings.Join(table.Ignored, ", "))
	}
	in := &fitData{subject: filepath.Base(path)}
	digest := sha256.Sum256(text)
	in.provenance.Sources = []fit.Source{{Name: filepath.Base(path), SHA256: hex.EncodeToString(digest[:])}}
	in.provenance.Version = version()
	in.measurements = table.Measurements
	name := in.measurements[0].Deployment
	if i := slices.IndexFunc(in.measurements, func(m fit.Measurement) bool { return m.Deployment != name }); i > 0 {
		return nil, fmt.Errorf("%s: rows of the deployments %s and %s: write a table for each", path, name, in.measurements[i].Deployment)
	}
	if name != "" {
		in.subject += ": " + name
	}
	return in, nil
}

// fitRuns reads run folders.
func fitRuns(std streams, dirs []string) (*fitData, error) {
	in := &fitData{provenance: fit.Provenance{Version: version(), Sources: []fit.Source{}}}
	model := ""
	for _, dir := range dirs {
		base := filepath.Base(filepath.Clean(dir))
		if len(dirs) > 1 && (base == experiment.SetFile) {
			continue // a shell's sweep/*
		}
		m, err := experiment.ReadEngineRun(dir)
		if err != nil {
			return nil, err
		}
		if model = cmp.Or(model, m.Model); m.Model != model {
			return nil, fmt.Errorf("the runs are of different models: %s is of %s, those before it are of %s", dir, m.Model, model)
		}
		in.provenance.Server = cmp.Or(in.provenance.Server, m.Server)
		in.blockSize, in.kvTokens = cmp.Or(in.blockSize, m.BlockSize), cmp.Or(in.kvTokens, m.KVTokens)
		if slices.ContainsFunc(in.measurements, func(other fit.Measurement) bool { return other.Name == m.Name }) {
			m.Name = dir
		}
		if slices.ContainsFunc(in.provenance.Sources, func(s fit.Source) bool { return s.SHA256 == m.SHA256 }) {
			return nil, fmt.Errorf("%s has the same run as an earlier folder: name each run once", dir)
		}
		if m.Unfit != "" {
			std.say("not fitted: %s: %s", dir, m.Unfit)
			in.invalid = in.invalid || m.Invalid
			in.excluded = append(in.excluded, fit.Row{Measurement: m.Measurement, Findings: []string{"run: " + m.Unfit}})
			continue
		}
		in.measurements = append(in.measurements, m.Measurement)
		in.provenance.Sources = append(in.provenance.Sources, fit.Source{Name: base, SHA256: m.SHA256})
	}
	in.provenance.Model = model
	in.subject = fmt.Sprintf("%s of %s", doc.Count(len(in.measurements)+len(in.excluded), "run"), cmp.Or(model, "an unnamed model"))
	if len(in.measurements) == 0 {
		return nil, in.explain(std, errors.New("no run can be fitted"))
	}
	return in, nil
}

// explain returns the error of a fit that lacks measurements. INVALID runs have their own
// exit status.
func (in *fitData) explain(std streams, err error) error {
	if in.invalid {
		std.say("%v", err)
		return errInvalid
	}
	return err
}

// complete sets the limits that the server reports and no flag sets.
func (in *fitData) complete(options *fit.Options) error {
	d := &options.Template
	if in.blockSize > 0 && in.kvTokens > 0 {
		d.Engine.BlockSize = cmp.Or(d.Engine.BlockSize, in.blockSize)
		if d.Engine.KVBlocks == 0 && !d.Disaggregated() { // prefill and decode engines may differ
			d.Engine.KVBlocks = max(in.kvTokens/d.Engine.BlockSize/max(d.Engines, 1), 1)
		}
	}
	if err := d.Validate(); err != nil {
		return fmt.Errorf("limits of the server: %w", err)
	}
	return nil
}

// fitURL measures a server.
func fitURL(c *cli.Context, std streams, stop stop, d *commandLine) (*fitData, error) {
	dir := d.Output.Dir
	if dir == "" {
		dir = experiment.NewFolder("runs", "fit-engine")
	}
	d.Settings.Unset(append(engineNames(), "out")...) // of the fit
	s := experiment.Set{Dir: dir, Each: func(t experiment.Trial) { sayTrial(std, t) }}
	if err := configure(c, std, stop, d, &s.Base); err != nil {
		return nil, err
	}
	cfg := &s.Base
	limits := experiment.EngineLimits{ISL: c.Int(longISLFlag), Concurrency: c.Int(mostFlag)}
	if err := limits.Check(); err != nil {
		return nil, misused("%w", err)
	}
	if len(cfg.ServerMetrics) == 0 {
		cfg.ServerMetrics, limits.KVTokens = findMetrics(stop.gently, cfg.Client)
	}
	std.say("measuring %s", secret.URL(cfg.Client.URLs[0]))
	runs, err := experiment.PlanEngineRuns(limits)
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		std.say("planned: %s, %d requests, ISL %d, OSL %d, %d in flight: %s", r.Name, r.Requests, r.ISL, r.OSL, r.Concurrency, r.Shows)
	}
	s.Save = func(result *experiment.Result) error {
		return runfile.WriteJSON(filepath.Join(result.Dir, runfile.SummaryFile), reported(result, report.View{}).Summary())
	}
	trials, err := experiment.MeasureEngines(stop.now, s, runs)
	if err != nil {
		switch {
		case errors.Is(err, context.Canceled):
			std.say("to continue, repeat the command with --out %s", dir)
		case len(trials) > 0 || errors.Is(err, experiment.ErrStopped):
			err = fmt.Errorf("%w; to continue, repeat the command with --out %s", err, dir)
		}
		return nil, d.ended(err)
	}
	var dirs []string
	for _, t := range trials {
		dirs = append(dirs, t.Dir)
	}
	std.say("the runs are in %s", dir)
	in, err := fitRuns(std, dirs)
	if err == nil && in.invalid {
		std.say("to repeat the runs that are INVALID, repeat the command with --out %s", dir)
	}
	return in, err
}

// engineNames returns the settings of engines.
func engineNames() (names []string) {
	for i := range settings.Table {
		if settings.Table[i].Group == settings.Engine {
			names = append(names, settings.Table[i].Name)
		}
	}
	return names
}

// findMetrics returns the URLs of the server's metrics, nil if it has none, and the size
// of its KV caches in tokens, 0 if unknown.
func findMetrics(ctx context.Context, client openai.Config) (urls []string, kvTokens int) {
	for _, text := range client.URLs {
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			urls = append(urls, (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/metrics"}).String())
		}
	}
	scraper, err := evidence.New(urls, nil)
	if err != nil || len(urls) == 0 {
		return nil, 0
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	figures, err := scraper.Scrape(ctx)
	if err != nil {
		return nil, 0
	}
	if figures.CapacityTokens != nil {
		kvTokens = int(*figures.CapacityTokens)
	}
	return urls, kvTokens
}
