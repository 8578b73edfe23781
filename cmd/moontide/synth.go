package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report/doc"
	"moontide/trace/format"
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
		Flags:  slices.Concat(traceFlags(), sessionsFlags(), treeFlags(), describeFlags(), sharedFlags(), checkFlags()),
		Action: func(c *cli.Context) error { return synthesize(c, std) },
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

func synthesize(c *cli.Context, std streams) error {
	if c.NArg() > 0 {
		return misused("synth: unexpected argument %q: name the source with --from", c.Args().First())
	}
	check, err := checkOf(c)
	if err != nil {
		return err
	}
	output := c.String(outFlag.Name)
	if check != nil && output == "-" {
		return misused("synth: --check needs --out FILE, which it reads")
	}
	d, err := draftOf(c, std)
	if err != nil {
		return err
	}
	rows, err := writeWith(std, output, d.write)
	if err != nil {
		return err
	}
	for _, note := range d.notes(rows) {
		std.say("%s", note)
	}
	if output != "-" {
		std.say("%s written to %s", doc.Count(rows, "request"), output)
	}
	if check != nil {
		return check.run(c, std, output)
	}
	return nil
}

// draftOf prepares the trace described by the flags.
func draftOf(c *cli.Context, std streams) (draft, error) {
	if describedBy(c) != "" {
		return draftDescription(c, std)
	}
	name, from := c.String("method"), c.String("from")
	switch {
	case from == "":
		return draft{}, misused("synth: no source: use --from TRACE, --spec FILE, or --isl and --osl")
	case !c.IsSet("num-requests") && name == treeMethod:
		return draft{}, misused("synth: --method tree needs --num-requests")
	}
	if name == treeMethod {
		return draftTree(c, std)
	}
	return draftSessions(c, std)
}
