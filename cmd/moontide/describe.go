package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report/doc"
	"moontide/synth/spec"
	"moontide/trace"
	"moontide/trace/format"
	"moontide/traces"
)

var specFlag = &choiceFlag{
	StringFlag: cli.StringFlag{
		Name: "spec", Category: ofDescriptions,
		Usage: "`FILE`: description in YAML, the name of a ready-made one, or - for standard input",
	},
	Choices: choiceSet{Names: traces.Specs(), Open: true},
}

// describeKey is a flag that sets a key of a description.
type describeKey struct{ flag, key, usage, otherwise string }

var describeKeys = []describeKey{
	{"isl", "isl", "`DIST`: prompt length (ISL) in tokens", ""},
	{"unique-isl", "unique_isl", "`DIST`: prompt length after the shared prefix in tokens; replaces --isl", ""},
	{"osl", "osl", "`DIST`: answer length (OSL) in tokens", ""},
	{"correlation", "correlation", "`R`: rank correlation of ISL and OSL, -1 to 1", "0"},
	{"rate", "rate", "`R`: arrival rate in requests/s", "1"},
	{"arrival", "arrival.process", "`PROCESS`: arrival process: %s", "poisson; gamma with --cv or --burstiness"},
	{"cv", "arrival.cv", "`CV`: coefficient of variation of gamma inter-arrival times; above 1 is bursty", ""},
	{"burstiness", "arrival.cv", "`K`: shape of gamma arrivals, 1/CV^2; below 1 is bursty; replaces --cv", ""},
	{"shared-prompts", "shared.count", "`N`: number of shared system prompts", "1 with --shared-len, else none"},
	{"shared-len", "shared.tokens", "`DIST`: length of a shared system prompt in tokens", ""},
	{"zipf", "shared.zipf", "`S`: Zipf exponent of the popularity of shared prompts", "0, uniform"},
	{"turns", "sessions.turns", "`DIST`: turns per conversation", "1"},
	{"think-time", "sessions.think_time", "`DIST`: pause between an answer and the next prompt, such as 10s or lognormal:20s:1.5", "0s"},
	{"new-tokens", "sessions.new_tokens", "`DIST`: tokens added by each later turn", "as in a first prompt"},
	{"duration", "duration", "only keep requests that arrive within this `TIME`", "no limit"},
}

// sharedKeys lists the keys set by flags shared with the other methods.
var sharedKeys = []describeKey{
	{flag: "num-requests", key: "num_requests"}, {flag: "seed", key: "seed"}, {flag: blockSizeFlag.Name, key: "block_size"},
}

func describeFlags() []cli.Flag {
	flags := []cli.Flag{specFlag}
	for _, k := range describeKeys {
		f := cli.StringFlag{Name: k.flag, Category: ofDescriptions, Usage: k.usage, DefaultText: k.otherwise}
		if flags = append(flags, &f); k.key == "arrival.process" {
			flags[len(flags)-1] = &choiceFlag{StringFlag: f, Choices: oneOf(trace.Processes()...)}
		}
	}
	return flags
}

func describedBy(c *cli.Context) string { return firstGiven(c, describeFlags()) }

func draftDescription(c *cli.Context, std streams) (draft, error) {
	if c.IsSet("cv") && c.IsSet("burstiness") {
		return draft{}, misused("synth: --cv and --burstiness are both set: use one of them")
	}
	if name := firstGiven(c, slices.Concat(traceFlags(), treeFlags(), sessionsFlags())); name != "" {
		return draft{}, misused("synth: --%s makes a trace from another one, --%s from a description: use one of them", name, describedBy(c))
	}
	d, err := readDescription(c, std, nil)
	if err != nil {
		return draft{}, err
	}
	return draft{
		write: func(w *format.Writer) (int, error) {
			rows, err := w.WriteAll(trace.Until(c.Context, trace.Borrow(d.Draw())))
			if err == nil && rows == 0 {
				err = errors.New("no request arrives within the duration")
			}
			return rows, err
		},
		notes: func(int) []string {
			return append([]string{fmt.Sprintf("block size: %d tokens", d.BlockSize())}, roundedSharing(d)...)
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

// readDescription reads --spec and overrides it with the flags. own replaces
// the values of some flags; "" omits the flag.
func readDescription(c *cli.Context, std streams, own map[string]string) (*spec.Spec, error) {
	if _, replaced := own["isl"]; !replaced && !c.IsSet(specFlag.Name) {
		if err := checkLengths(c); err != nil {
			return nil, err
		}
	}
	o := spec.Options{Name: "the flags"}
	if _, err := strconv.Atoi(c.String("shared-len")); c.Command.Name == "bench" && (c.IsSet("turns") || c.IsSet("shared-len") && err != nil) {
		o.BlockSize = engineBlock
	}
	for _, k := range slices.Concat(describeKeys, sharedKeys) {
		value, replaced := own[k.flag]
		if !replaced && c.IsSet(k.flag) {
			value = fmt.Sprint(c.Value(k.flag))
		}
		if shape, err := strconv.ParseFloat(value, 64); k.flag == "burstiness" && err == nil {
			value = strconv.FormatFloat(1/math.Sqrt(shape), 'g', -1, 64)
		}
		if value != "" || !replaced && c.IsSet(k.flag) {
			o.Settings = append(o.Settings, spec.Setting{Key: k.key, Value: value, From: "--" + k.flag})
		}
	}
	var text []byte
	if spec := c.String(specFlag.Name); c.IsSet(specFlag.Name) {
		var err error
		if text, err = readSpec(std, spec); err != nil {
			return nil, err
		}
		o.Name = traceName(spec)
	}
	d, err := spec.Parse(text, o)
	if err != nil && !c.IsSet(specFlag.Name) {
		return nil, misused("%s: %w", c.Command.Name, err)
	}
	return d, err
}

// checkLengths returns an error if a description by flags alone lacks a length.
func checkLengths(c *cli.Context) error {
	switch {
	case !c.IsSet("isl") && !c.IsSet("unique-isl"):
		return misused("%s: --isl is missing: the prompt length in tokens, such as 3000", c.Command.Name)
	case !c.IsSet("osl"):
		return misused("%s: --osl is missing: the answer length in tokens, such as 150", c.Command.Name)
	}
	return nil
}

// engineBlock is the usual block size of engines, for prompts that share parts of any
// length.
const engineBlock = 16

// readSpec returns the text of a description, a file or a built-in one. It reads at most one
// byte over the limit.
func readSpec(std streams, name string) ([]byte, error) {
	in := io.NopCloser(std.in)
	if name != "-" {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			text, ok := traces.Spec(name)
			if !ok {
				return nil, fmt.Errorf("reading description: %w; ready-made descriptions: %s", err, strings.Join(traces.Specs(), ", "))
			}
			return text, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading description: %w", err)
		}
		in = f
	}
	defer in.Close()
	var text bytes.Buffer
	if _, err := io.Copy(&text, io.LimitReader(in, spec.MaxText+1)); err != nil {
		return nil, fmt.Errorf("reading description: %w", err)
	}
	return text.Bytes(), nil
}
