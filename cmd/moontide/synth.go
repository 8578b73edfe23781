package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bytedance/sonic"
	"github.com/urfave/cli/v2"

	"moontide/analyze/fidelity"
	"moontide/analyze/report"
	"moontide/analyze/report/doc"
	"moontide/replay/experiment"
	"moontide/replay/settings"
	"moontide/synth/sessions"
	"moontide/synth/spec"
	"moontide/synth/tree"
	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/format"
	"moontide/trace/log"
	"moontide/traces"
)

// draft is a trace ready to be drawn.
type draft struct {
	write func(*format.Writer) (rows int, err error)
	// notes are printed after writing.
	notes func(rows int) []string
}

// The methods; the first is the default.
const (
	defaultMethod = "sessions"
	treeMethod    = "tree"
)

func synthCommand(std streams, _ stop) *cli.Command {
	d, described := describeFlags()
	return &cli.Command{
		Usage: "generate a trace from another one, or from a description",
		Description: "With --from, --method sessions copies conversations to times near their own, with other lengths, pauses " +
			"and block ids. It preserves think times, bursts, lengths, and how soon prefixes are reused. TRACE may " +
			"also be a model written by moontide fit. If you request more rows than the source has, its course repeats " +
			"with new conversations.\n\n" +
			"--method tree is the method of NVIDIA's data generator: it samples paths from the tree of shared " +
			"prefixes. Lengths, sharing and rate can be scaled.\n\n" +
			"A description needs no source trace. It is a YAML file, flags, or both; flags override the file. " +
			"Ready-made descriptions: " + strings.Join(traces.Specs(), ", ") + ".\n\n" +
			"A DIST is a probability distribution: a number, uniform:100:2000 (min, max), normal:1000:200 (mean, " +
			"standard deviation), lognormal:1000:1.5 (mean, CV), exponential:1000 (mean), " +
			"geometric:4 (mean), each optionally truncated with :min=A:max=B.",
		Flags:  slices.Concat(traceFlags(), sessionsFlags(), treeFlags(), described, sharedFlags(), checkFlags()),
		Action: func(c *cli.Context) error { return synthesize(c, std, d) },
	}
}

// traceFlags returns the flags used by both methods that derive a trace from another.
func traceFlags() []cli.Flag {
	return slices.Concat(group(ofTraces,
		&cli.StringFlag{Name: "from", Usage: "`TRACE` or model to learn from; - is standard input"},
		&choiceFlag{
			StringFlag: cli.StringFlag{Name: "method", Value: defaultMethod, Usage: "`METHOD` to use: %s"},
			Choices:    oneOf(defaultMethod, treeMethod),
		},
		&cli.Float64Flag{Name: "speedup-ratio", Value: 1, Usage: "divide the time between requests by `X`"},
	), readFlags(), []cli.Flag{skipBadRowsFlag})
}

func sharedFlags() []cli.Flag {
	return slices.Concat(group(inRequests,
		&cli.IntFlag{Name: "num-requests", Aliases: []string{"n"}, Usage: "generate `N` requests; required by --method tree",
			DefaultText: "as many as the trace has; the description's, or 100"},
		&cli.Uint64Flag{Name: "seed", Usage: "`SEED`: random seed; the same seed gives the same bytes", DefaultText: "0, or the description's"},
		&cli.IntFlag{Name: blockSizeFlag.Name, Usage: "block size in tokens",
			DefaultText: "found in the trace; the description's; what fits shared prefixes, or 512"},
	), group(inOutput,
		dataFlag("-", "`FILE` to write, compressed if it ends in .gz or .zst; - is standard output"),
	))
}

func synthesize(c *cli.Context, std streams, described *commandLine) error {
	if c.NArg() > 0 {
		return misused("unexpected argument %q: name the source with --from", c.Args().First())
	}
	check, err := checkOf(c)
	if err != nil {
		return err
	}
	output := c.String(outFlag.Name)
	if check != nil && output == "-" {
		return misused("--check needs --out FILE, which it reads")
	}
	d, err := draftOf(c, std, described)
	if err != nil {
		return err
	}
	err = writeTrace(c, std, d.write, func(rows int, err error) {
		if err == nil {
			std.sayAll("%s", d.notes(rows))
		}
	})
	if err != nil || check == nil {
		return err
	}
	return check.run(c, std, output)
}

// draftOf prepares the trace described by the flags.
func draftOf(c *cli.Context, std streams, described *commandLine) (draft, error) {
	if describedBy(c, described) != "" {
		return draftDescription(c, std, described)
	}
	name, from := c.String("method"), c.String("from")
	switch {
	case from == "":
		return draft{}, misused("no source: use --from TRACE, --spec FILE, or --isl and --osl")
	case !c.IsSet("num-requests") && name == treeMethod:
		return draft{}, misused("--method tree needs --num-requests")
	}
	if name == treeMethod {
		return draftTree(c, std)
	}
	return draftSessions(c, std)
}

// traceModel is a model learned from a trace.
type traceModel interface {
	BlockSize() block.Size
	Irregular() int
}

// learn fits a model to the trace at path, and reports block size and irregular rows. stored
// handles a file that is already a model.
func learn[M traceModel](c *cli.Context, std streams, path string, fit func(reqs trace.Requests, blockSize int) (M, error), stored func(file string) (M, error)) (model M, err error) {
	files, remove, err := spoolTraces(std, path)
	if err != nil {
		return model, err
	}
	defer remove()
	if isModel(files[0]) {
		return stored(files[0])
	}
	in, err := openTrace(c, std, path, files[0], formatOptions(c))
	if err != nil {
		return model, err
	}
	defer in.Close()
	model, err = fit(in.Requests(), in.blockSize())
	in.report(true)
	if err != nil {
		return model, in.name(err)
	}
	if size := model.BlockSize(); size.Tokens > 0 {
		std.say("block size: %s", size)
	}
	if k := model.Irregular(); k > 0 {
		std.say("%s with block ids that do not cover the prompt exactly", doc.Count(k, "row"))
	}
	return model, nil
}

// isModel reports whether a file is a model of a trace.
func isModel(path string) bool {
	f, err := format.OpenFile(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head, _ := bufio.NewReader(f).Peek(1024)
	return sessions.IsModel(head)
}

func fitSessions(c *cli.Context, std streams, path string, stored func(file string) (*sessions.Model, error)) (*sessions.Model, error) {
	m, err := learn(c, std, path, func(reqs trace.Requests, blockSize int) (*sessions.Model, error) {
		return sessions.Fit(reqs, sessions.Options{BlockSize: blockSize})
	}, stored)
	if err != nil {
		return nil, err
	}
	std.sayAll("note: %s", m.Notes())
	return m, nil
}

// sessionsFlags are the flags of the default method.
func sessionsFlags() []cli.Flag {
	return group(ofSessions,
		&cli.Float64Flag{Name: "rate-scale", Aliases: []string{"rate-multiplier"}, Value: 1, Usage: "multiply the rate of new conversations by `X`; pauses within them do not change"},
		&cli.StringFlag{Name: "only", Usage: "generate only the conversations of this `CLIENT`, as listed by fit"},
	)
}

func draftSessions(c *cli.Context, std streams) (draft, error) {
	if name := firstGiven(c, treeFlags()); name != "" {
		return draft{}, misused("--%s only works with --method tree", name)
	}
	model, err := sessionsModel(c, std)
	if err != nil {
		return draft{}, err
	}
	if c.IsSet("only") {
		if model, err = model.Only(c.String("only")); err != nil {
			return draft{}, misused("--only: %v", err)
		}
	}
	n := cmp.Or(c.Int("num-requests"), model.SourceRequests())
	if model, err = model.AtRate(c.Float64("rate-scale")); err != nil {
		return draft{}, misused("--rate-scale: %w", err)
	}
	return draft{
		write: func(w *format.Writer) (int, error) {
			reqs := trace.Speed(model.Requests(c.Uint64("seed"), n), c.Float64("speedup-ratio"))
			return w.WriteAll(trace.Until(c.Context, reqs))
		},
		notes: func(int) []string { return nil },
	}, nil
}

func sessionsModel(c *cli.Context, std streams) (*sessions.Model, error) {
	from := c.String("from")
	return fitSessions(c, std, from, func(file string) (*sessions.Model, error) {
		f, err := format.OpenFile(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		m, err := sessions.Read(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", inputName(from), err)
		}
		if c.IsSet(blockSizeFlag.Name) {
			return nil, misused("--block-size has no effect on a model: the block size of %s is %d tokens", traceName(from), m.BlockSize().Tokens)
		}
		return m, nil
	})
}

// treeFlags have the names of NVIDIA's data generator.
func treeFlags() []cli.Flag {
	return group(ofTree,
		&cli.Float64Flag{Name: "prefix-len-multiplier", Value: 1, Usage: "multiply the length of shared prefixes by `X`, which may be a fraction"},
		&cli.IntFlag{Name: "prefix-root-multiplier", Value: 1, Usage: "distribute requests over `N` copies of the shared prefixes"},
		&cli.Float64Flag{Name: "prompt-len-multiplier", Value: 1, Usage: "multiply the length of unique prompts by `X`"},
		&cli.Float64Flag{Name: "osl-multiplier", Value: 1, Usage: "multiply output lengths by `X`"},
		&cli.IntFlag{Name: "min-isl", DefaultText: "none", Usage: "reject requests with fewer than `N` input tokens"},
		&cli.IntFlag{Name: "max-isl", DefaultText: "none", Usage: "reject requests with more than `N` input tokens"},
		&cli.IntFlag{Name: "min-osl", DefaultText: "none", Usage: "raise shorter outputs to `N` tokens"},
		&cli.IntFlag{Name: "max-osl", DefaultText: "none", Usage: "cut longer outputs to `N` tokens"},
		&cli.BoolFlag{Name: "keep-rate", Usage: "skip the time of rejected requests, to keep the rate of the source"},
	)
}

func treeShape(c *cli.Context) (tree.Shape, error) {
	shape := tree.Shape{
		PrefixLenMultiplier:  c.Float64("prefix-len-multiplier"),
		PrefixRootMultiplier: c.Int("prefix-root-multiplier"),
		PromptLenMultiplier:  c.Float64("prompt-len-multiplier"),
		OSLMultiplier:        c.Float64("osl-multiplier"),
		SpeedupRatio:         c.Float64("speedup-ratio"),
		MinISL:               c.Int("min-isl"),
		MaxISL:               c.Int("max-isl"),
		MinOSL:               c.Int("min-osl"),
		MaxOSL:               c.Int("max-osl"),
		KeepRate:             c.Bool("keep-rate"),
	}
	return shape, misusedShape(shape.Check())
}

// shapeFlags names the flags of a shape's fields.
var shapeFlags = strings.NewReplacer(
	"PrefixLenMultiplier", "--prefix-len-multiplier", "PrefixRootMultiplier", "--prefix-root-multiplier",
	"PromptLenMultiplier", "--prompt-len-multiplier", "OSLMultiplier", "--osl-multiplier", "SpeedupRatio", "--speedup-ratio",
	"MinISL", "--min-isl", "MaxISL", "--max-isl", "MinOSL", "--min-osl", "MaxOSL", "--max-osl",
)

// misusedShape phrases a shape's error in terms of the flags that caused it.
func misusedShape(err error) error {
	var shape *tree.ShapeError
	if errors.As(err, &shape) {
		return misused("%s", shapeFlags.Replace(shape.Error()))
	}
	return err
}

func draftTree(c *cli.Context, std streams) (draft, error) {
	if name := firstGiven(c, sessionsFlags()); name != "" {
		return draft{}, misused("--%s only works with --method sessions", name)
	}
	shape, err := treeShape(c)
	if err != nil {
		return draft{}, err
	}
	model, err := fitTree(c, std)
	if err != nil {
		return draft{}, err
	}
	drawing, err := model.Draw(c.Uint64("seed"), c.Int("num-requests"), shape)
	if err != nil {
		return draft{}, misusedShape(err)
	}
	return draft{
		write: func(w *format.Writer) (int, error) {
			n, err := w.WriteAll(trace.Until(c.Context, trace.Borrow(drawing)))
			return n, misusedShape(err)
		},
		notes: func(rows int) []string { return treeNotes(drawing, rows, shape) },
	}, nil
}

func fitTree(c *cli.Context, std streams) (*tree.Model, error) {
	from := c.String("from")
	return learn(c, std, from, func(reqs trace.Requests, blockSize int) (*tree.Model, error) {
		return tree.Fit(reqs, tree.Options{BlockSize: blockSize})
	}, func(string) (*tree.Model, error) {
		return nil, fmt.Errorf("%s is a model for --method sessions; --method tree needs a trace", traceName(from))
	})
}

// treeNotes reports the requests rejected by the ISL limits.
func treeNotes(d *tree.Drawing, rows int, s tree.Shape) []string {
	if d.Rejected() == 0 {
		return nil
	}
	drawn := rows + d.Rejected()
	rejected := fmt.Sprintf("%s of %s drawn requests rejected by the limits of ISL", doc.Int(d.Rejected()), doc.Int(drawn))
	if s.KeepRate {
		return []string{fmt.Sprintf("%s; the others arrive at %.2f requests/s", rejected, d.Rate())}
	}
	return []string{fmt.Sprintf("%s; the rate drops from %.2f to %.2f requests/s (--keep-rate keeps it)",
		rejected, d.Rate()*float64(drawn)/float64(rows), d.Rate())}
}

// describeFlags returns the flags of a description, and the settings that they set.
func describeFlags() (*commandLine, []cli.Flag) {
	d, flags := newCommandLine(nil, func(row *settings.Setting) bool {
		return row.Group == settings.Descriptions || slices.Contains(words("rate arrival burstiness"), row.Name)
	})
	for _, own := range []struct{ name, usage, otherwise string }{
		{"rate", "`R`: arrival rate in requests/s", "1"},
		{"arrival", "`PROCESS` of arrivals: %s", "poisson; gamma with --cv or --burstiness"},
		{"burstiness", "`K`: shape of gamma arrivals, 1/CV^2; below 1 is bursty; replaces --cv", ""},
	} {
		f := findFlag(flags, own.name).(*settingFlag)
		f.Usage, f.DefaultText = oneOf(trace.Processes()...).In(own.usage), own.otherwise
	}
	return d, append(group(ofDescriptions, flags...), &cli.StringFlag{Name: "duration", Category: ofDescriptions, Usage: "only keep requests that arrive within this `TIME`", DefaultText: "no limit"})
}

// describedBy returns a flag of a description that was given, or "".
func describedBy(c *cli.Context, d *commandLine) string {
	for name := range d.Given() {
		return name
	}
	return firstGivenOf(c, "duration")
}

func draftDescription(c *cli.Context, std streams, d *commandLine) (draft, error) {
	if c.IsSet("cv") && c.IsSet("burstiness") {
		return draft{}, misused("--cv and --burstiness are both set: use one of them")
	}
	if name := firstGiven(c, slices.Concat(traceFlags(), treeFlags(), sessionsFlags())); name != "" {
		return draft{}, misused("--%s makes a trace from another one, --%s from a description: use one of them", name, describedBy(c, d))
	}
	described, err := readDescription(c, std, d)
	if err != nil {
		return draft{}, err
	}
	return draft{
		write: func(w *format.Writer) (int, error) {
			rows, err := w.WriteAll(trace.Until(c.Context, trace.Borrow(described.Draw())))
			if err == nil && rows == 0 {
				err = errors.New("no request arrives within the duration")
			}
			return rows, err
		},
		notes: func(int) []string {
			return append([]string{fmt.Sprintf("block size: %d tokens", described.BlockSize())}, roundedSharing(described)...)
		},
	}, nil
}

// roundedSharing returns a note if shared prefixes are not whole blocks.
func roundedSharing(d *spec.Spec) []string {
	drawn, shared := d.SharedTokens()
	if drawn == shared {
		return nil
	}
	return []string{fmt.Sprintf("note: only whole blocks are shared: %s of the %s tokens of a shared prefix, on average; a block size that divides the prefixes shares all of them",
		doc.Fixed(shared, 0), doc.Fixed(drawn, 0))}
}

// readDescription returns the description of the flags.
func readDescription(c *cli.Context, std streams, d *commandLine) (*spec.Spec, error) {
	s, o := d.Settings, spec.Options{Name: "the description"}
	for _, flag := range words("num-requests seed block-size duration") {
		if c.IsSet(flag) {
			o.Settings = append(o.Settings, spec.Setting{Key: strings.ReplaceAll(flag, "-", "_"), Value: c.String(flag), From: "--" + flag})
		}
	}
	if s.Description.Spec != "" {
		o.Name = traceName(s.Description.Spec)
		files, remove, err := spoolTraces(std, s.Description.Spec)
		if err != nil {
			return nil, err
		}
		defer remove()
		s.Description.Spec = files[0]
	}
	if err := s.CheckDescription(); err != nil {
		return nil, d.misuse(err)
	}
	described, err := experiment.Description(&s, o, func(setting string) string { return "--" + setting })
	if err != nil && s.Description.Spec == "" {
		return nil, misused("%w", err)
	}
	return described, err
}

// Flags of a fidelity check.
const (
	checkFlagName = "check"
	againstFlag   = "against"
)

func checkFlags() []cli.Flag {
	return append(group(ofCheck,
		&cli.BoolFlag{Name: checkFlagName, Usage: "compare the generated trace with its source: PASS, or FAIL with exit status 4"},
		&cli.StringFlag{Name: againstFlag, Usage: "`TRACE` to compare with; with --only, its requests of that client", DefaultText: "--from"},
	), group(inOutput,
		&cli.BoolFlag{Name: "json", Usage: "print the result of --check as JSON instead of a table"},
		&cli.StringFlag{Name: "html", Usage: "also write the result of --check to `FILE`, a self-contained page"},
	)...)
}

// fidelityCheck is a fidelity check, as configured by flags.
type fidelityCheck struct {
	source string
	client string // the only one of the source that is compared, "" for all
	outputs
}

// checkOf parses the flags of a check, and returns nil without one.
func checkOf(c *cli.Context) (*fidelityCheck, error) {
	if !c.Bool(checkFlagName) {
		if name := firstGivenOf(c, againstFlag, "json", "html"); name != "" {
			return nil, misused("--%s needs --check", name)
		}
		return nil, nil
	}
	check := &fidelityCheck{source: c.String("from"), client: c.String("only")}
	if c.IsSet(againstFlag) {
		check.source = c.String(againstFlag)
	}
	switch check.source {
	case "":
		return nil, misused("--check needs --against TRACE to compare a described trace with")
	case "-":
		return nil, misused("--check reads the source twice: use a file instead of standard input")
	}
	if !c.IsSet(againstFlag) && isModel(check.source) {
		return nil, misused("%s is a model: --check needs --against TRACE", traceName(check.source))
	}
	var err error
	check.outputs, err = outputsOf(c)
	return check, err
}

// run judges the trace in a file.
func (f *fidelityCheck) run(c *cli.Context, std streams, file string) error {
	drawn, err := f.collect(c, std, file, format.Options{}, func(reqs trace.Requests) trace.Requests { return reqs })
	if err != nil {
		return err
	}
	rateScale := c.Float64("rate-scale")
	source, err := f.collect(c, std, f.source, formatOptions(c), func(reqs trace.Requests) trace.Requests {
		reqs = trace.Take(reqs, max(1, int(float64(drawn.Requests)/rateScale)))
		return trace.Speed(reqs, c.Float64("speedup-ratio"))
	})
	if err != nil {
		return err
	}
	result := report.Fidelity{SourceName: traceName(f.source), DrawnName: traceName(file), Report: fidelity.Compare(source, drawn, rateScale), RateScale: rateScale}
	err = f.show(std, resultsOf(result))
	if err != nil || result.Pass() {
		return err
	}
	return gateError{errors.New("the drawn trace does not resemble its source: FAIL")}
}

// collect collects the compared values of a part of a trace.
func (f *fidelityCheck) collect(c *cli.Context, std streams, path string, opts format.Options, part func(trace.Requests) trace.Requests) (*fidelity.Trace, error) {
	in, err := openTrace(c, std, path, path, opts)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	in.keep()
	reqs := in.Borrowed()
	if path == f.source && f.client != "" {
		reqs = trace.Prune(in.Requests(), func(reqs trace.Requests) trace.Requests { return ofClient(reqs, f.client) }, new(int))
	}
	t, err := fidelity.Collect(part(reqs), in.blockSize())
	return t, in.locate(err)
}

// ofClient returns the requests with all values of a client's name among their extra keys.
func ofClient(reqs trace.Requests, name string) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		for r, err := range reqs {
			if err == nil && !hasValues(r, strings.Split(name, "/")) {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func hasValues(r trace.Request, values []string) bool {
	var keys map[string]any
	if sonic.Unmarshal(r.Extra, &keys) != nil {
		return false
	}
	if recorded, ok := keys[log.RecordedKey].(map[string]any); ok {
		maps.Copy(keys, recorded)
	}
	for _, v := range values {
		if !slices.ContainsFunc(slices.Collect(maps.Values(keys)), func(of any) bool { return fmt.Sprint(of) == v }) {
			return false
		}
	}
	return true
}
