package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/trace"
	"moontide/trace/format"
	"moontide/traces"
)

// draft is a trace that a method is ready to draw.
type draft struct {
	write func(*format.Writer) (rows int, err error)
	// file is the name that those who ask for the method by name expect
	// without --output; "" is standard output.
	file string
	// redraw draws n requests anew, of a trace that is like another one.
	redraw func(n int) (trace.Requests, error)
	// notes say what is worth knowing of the trace once it is written.
	notes func(rows int) []string
}

// method makes a draft from the command line, which it has checked.
type method func(c *cli.Context, std streams) (draft, error)

var methods = map[string]method{"sessions": draftSessions, "tree": draftTree}

const defaultMethod = "sessions"

// The groups in which the help shows the flags.
const (
	ofTraces       = "FROM A TRACE"
	ofSessions     = "FROM A TRACE, --method sessions"
	ofTree         = "FROM A TRACE, --method tree"
	ofDescriptions = "FROM A DESCRIPTION"
	ofAll          = "IN EVERY CASE"
)

func synthCommand(std streams) *cli.Command {
	return &cli.Command{
		Name:  "synth",
		Usage: "make a trace that is like another one, or as a description says",
		UsageText: "moontide synth --from TRACE [-o FILE]\n" +
			"moontide synth --from TRACE --method tree -n N [-o FILE]\n" +
			"moontide synth --spec FILE | --isl LAW --osl LAW [-o FILE]",
		Description: "From a trace, --method sessions keeps what a server feels: conversations and think times, bursts,\n" +
			"lengths, and prefixes that come again as soon as they did. TRACE may be a model of moontide fit.\n" +
			"More requests than the source has go on as it did, with new conversations.\n\n" +
			"--method tree is that of NVIDIA's data generator: it walks the tree of prefixes that requests share.\n" +
			"Its lengths, sharing and pace can be multiplied. Without --output it writes a file named after the source\n" +
			"and what was asked for: conversation_trace_synth_16.00x1+10.00_speedup1_maxisl110000.jsonl.\n\n" +
			"A description needs no trace. It is a file in YAML, flags, or both: flags come over the file. Ready ones:\n" +
			strings.Join(traces.Descriptions()[:6], ", ") + ",\n" + strings.Join(traces.Descriptions()[6:], ", ") + ".\n\n" +
			"A LAW is a number or uniform:100:2000 (min, max), normal:1000:200 (mean, std), lognormal:1000:1.5 (mean, cv),\n" +
			"exponential:1000 (mean), weibull:1000:1.5 (mean, cv), geometric:4 (mean), each of which :min=A:max=B can cut,\n" +
			"or file:PATH (numbers, or a trace).",
		CustomHelpTemplate: groupedHelp,
		Flags:              slices.Concat(traceFlags, sessionsFlags, treeFlags, describeFlags(), sharedFlags()),
		Action:             func(c *cli.Context) error { return synthesize(c, std) },
	}
}

// groupedHelp shows flags under their categories. Both keep their order, which
// the library's own help would sort.
const groupedHelp = `NAME:
   {{template "helpNameTemplate" .}}

USAGE:
   {{template "usageTemplate" .}}

DESCRIPTION:
   {{template "descriptionTemplate" .}}
{{$group := ""}}{{range .VisibleFlags}}{{if and .GetCategory (ne .GetCategory $group)}}{{$group = .GetCategory}}
{{$group}}:
{{end}}   {{.}}
{{end}}`

// traceFlags go with both methods to make a trace from another one.
var traceFlags = append([]cli.Flag{
	&cli.StringFlag{Name: "from", Category: ofTraces, Usage: "the `TRACE` to learn from, - for standard input, or a model of moontide fit"},
	&cli.StringFlag{Name: "method", Category: ofTraces, Value: defaultMethod, DefaultText: defaultMethod, Usage: "how to make it: `METHOD` is one of " + methodNames()},
	&cli.Float64Flag{Name: "speedup-ratio", Category: ofTraces, Value: 1, Usage: "divide the time between requests by this"},
	checkFlag,
	&cli.BoolFlag{Name: skipBadRowsFlag.Name, Category: ofTraces, DisableDefaultText: true, Usage: skipBadRowsFlag.Usage},
	tokenizerFlag(ofTraces),
}, formatFlags(ofTraces)...)

// sharedFlags go with every way to make a trace.
func sharedFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "num-requests", Aliases: []string{"n"}, Category: ofAll, Usage: "make `N` rows; --method tree needs it",
			DefaultText: "from a trace: as many as it has; from a description: what it says, or 100"},
		&cli.GenericFlag{Name: "seed", Category: ofAll, Value: new(seed), Usage: "the same seed gives the same bytes",
			DefaultText: "0, or what the description says"},
		&cli.IntFlag{Name: blockSizeFlag.Name, Category: ofAll, Usage: "`TOKENS` of a block",
			DefaultText: "from a trace: found in it; from a description: what it says, or 512"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Category: ofAll, Usage: "`FILE` to write (.gz and .zst are compressed), - for standard output",
			DefaultText: "-, and see --method tree"},
	}
}

// seed is the value of a flag whose errors say what is allowed.
type seed uint64

func (s *seed) Set(text string) error {
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return fmt.Errorf("want a whole number from 0 to %d", uint64(math.MaxUint64))
	}
	*s = seed(n)
	return nil
}

func (s *seed) Get() any       { return uint64(*s) }
func (s *seed) String() string { return strconv.FormatUint(uint64(*s), 10) }

func methodNames() string { return strings.Join(slices.Sorted(maps.Keys(methods)), ", ") }

func synthesize(c *cli.Context, std streams) error {
	if c.NArg() > 0 {
		return misused("synth: takes no argument: %q (the source is --from)", c.Args().Slice())
	}
	d, err := draftOf(c, std)
	if err != nil {
		return err
	}
	output := outputOf(c, d)
	rows, err := writeWith(std, output, d.write)
	if err != nil {
		return err
	}
	for _, note := range d.notes(rows) {
		fmt.Fprintf(std.err, "moontide: %s\n", note)
	}
	if output != "-" {
		fmt.Fprintf(std.err, "moontide: %d requests written to %s\n", rows, output)
	}
	if c.Bool(checkFlag.Name) {
		return checkFidelity(c, std, d, output)
	}
	return nil
}

// draftOf is the trace that the command line asks for.
func draftOf(c *cli.Context, std streams) (draft, error) {
	if describedBy(c) != "" {
		return draftDescription(c, std)
	}
	if err := checkBlockSize(c); err != nil {
		return draft{}, err
	}
	name, from := c.String("method"), c.String("from")
	prepare, known := methods[name]
	switch {
	case !known:
		return draft{}, misused("synth: --method is not one of %s: %q", methodNames(), name)
	case from == "":
		return draft{}, misused("synth: --from names the trace to learn from, --spec a description, or --isl and --osl describe one")
	case !c.IsSet("num-requests") && name == "tree":
		return draft{}, misused("synth: --method tree needs --num-requests")
	case c.Int("num-requests") < 1 && c.IsSet("num-requests"):
		return draft{}, misused("synth: --num-requests is not a positive number: %d", c.Int("num-requests"))
	case c.Bool(checkFlag.Name) && from == "-":
		return draft{}, misused("synth: --check reads the source a second time, and standard input can be read once: want a file")
	}
	return prepare(c, std)
}

// outputOf is where the trace goes. The default method behaves as all commands
// do; another was asked for by name, and gives what that name stands for.
func outputOf(c *cli.Context, d draft) string {
	switch {
	case c.IsSet("output"):
		return c.String("output")
	case c.IsSet("method") && d.file != "":
		return d.file
	}
	return "-"
}

// untilRows are rows up to the moment the user interrupts them.
type untilRows struct {
	ctx  context.Context
	rows trace.Rows
}

func (u untilRows) Read(r *trace.Request) error {
	if u.ctx.Err() != nil {
		return errInterrupted
	}
	return u.rows.Read(r)
}
