package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/analyze/slo"
	"moontide/replay/experiment"
	"moontide/replay/secret"
	"moontide/replay/settings"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
)

const (
	configFlag = "config"
	setFlag    = "set"
)

// commandLine collects the settings of a command line.
type commandLine struct {
	settings.Settings
	lists func(row *settings.Setting) bool // whether a setting accepts a list, for an axis; nil if none does
	axes  []experiment.Axis
	flags map[string]bool // settings that are flags of the verb
	file  *fit.File       // of the engines that are simulated in virtual time; nil without one
}

// newCommandLine returns the settings of a verb and their flags: those of the rows that are
// wanted.
func newCommandLine(lists func(row *settings.Setting) bool, wanted func(row *settings.Setting) bool) (*commandLine, []cli.Flag) {
	d := &commandLine{lists: lists, flags: map[string]bool{}}
	var flags []cli.Flag
	for i := range settings.Table {
		row := &settings.Table[i]
		if !wanted(row) {
			continue
		}
		d.flags[row.Name] = true
		flags = append(flags, &settingFlag{cli.GenericFlag{
			Name: row.Name, Category: string(row.Group), Usage: d.usage(row), DefaultText: row.Default, Value: &settingValue{d, row},
		}, row})
	}
	return d, flags
}

// fileFlags are the flags for settings that have none.
func fileFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: configFlag, Category: string(settings.Control), Usage: "`FILE` with settings in YAML or JSON, or the run.json of a run to repeat; flags and --set override it"},
		repeatable(cli.GenericFlag{Name: setFlag, Category: string(settings.Control), Usage: "`NAME=VALUE`: set a setting that has no flag; repeatable, see the reference of settings"}),
	}
}

// axes are the settings of which a list makes a run for each value.
func axes(row *settings.Setting) bool { return row.Axis && row.Name != "url" }

// engineAxes are those of simulated engines.
func engineAxes(row *settings.Setting) bool { return row.Axis && row.Group == settings.Engine }

// usage returns the help of a setting.
func (d *commandLine) usage(row *settings.Setting) string {
	text := row.Usage()
	if d.lists == nil {
		return text
	}
	if d.lists(row) {
		text += "; a list such as 1,2,4 makes a run for each"
		if row.Choices != nil {
			text = strings.Replace(text, "1,2,4", row.Choices[0].Name+","+row.Choices[1].Name, 1)
		}
	}
	if row.Name == "url" {
		text = "`URL` of an OpenAI-compatible endpoint, or label=URL for each of several"
	}
	return text
}

// settingFlag is the flag of a setting.
type settingFlag struct {
	cli.GenericFlag
	row *settings.Setting
}

// String returns the flag as the help shows it.
func (f *settingFlag) String() string { return cli.FlagStringer(f) }

// TakesValue reports whether the flag has a value.
func (f *settingFlag) TakesValue() bool { return !f.row.IsBool() }

// placeholder stands for a value whose help does not name one.
func (f *settingFlag) placeholder() string {
	switch f.row.Field(new(settings.Settings)).(type) {
	case *int, *uint64:
		return "N"
	case *time.Duration:
		return "TIME"
	}
	if f.row.Choices != nil {
		return "NAME"
	}
	return "X"
}

// check returns an error if a text is no value of the flag.
func (f *settingFlag) check(text string) error {
	d := *f.Value.(*settingValue).line
	return (&settingValue{&d, f.row}).Set(text)
}

// settingValue parses the value of a flag into the settings of a command line.
type settingValue struct {
	line *commandLine
	row  *settings.Setting
}

// IsBoolFlag tells the flag package that the value is optional.
func (v *settingValue) IsBoolFlag() bool { return v.row.IsBool() }

func (v *settingValue) Get() any { return v.String() }

func (v *settingValue) String() string {
	if v == nil || v.line == nil {
		return ""
	}
	return v.row.Text(&v.line.Settings)
}

func (v *settingValue) Set(text string) error { return v.line.set(v.row, text, "--"+v.row.Name) }

// set sets a setting, or an axis to a list.
func (d *commandLine) set(row *settings.Setting, text, from string) error {
	list := axes(row) && settings.IsList(text)
	if !list || d.lists == nil || !d.lists(row) {
		err := d.Settings.Set(row.Name, text, from)
		if err != nil && list {
			err = fmt.Errorf("takes one value, not the list %.60q", text)
		}
		return err
	}
	values, err := row.Values(text)
	if err != nil {
		return err
	}
	d.axes = slices.DeleteFunc(slices.Clone(d.axes), func(a experiment.Axis) bool { return a.Setting == row.Name })
	d.axes = append(d.axes, experiment.Axis{Setting: row.Name, Values: values})
	if err := d.Settings.Replace(row.Name, values[0], from); err != nil { // for checks
		return err
	}
	return nil
}

// complete adds the settings of --set and --config that no flag has set.
func (d *commandLine) complete(c *cli.Context) error {
	for _, text := range textsOf(c, setFlag) {
		name, value, ok := strings.Cut(text, "=")
		row := settings.Find(name)
		if !ok {
			return misused("--set %q is not NAME=VALUE", secret.Message(text))
		}
		from := "--set " + name
		if row != nil {
			if before, set := d.From(row.Name); set && strings.HasPrefix(before, "--") && !strings.HasPrefix(before, "--set") {
				continue
			}
			if err := d.set(row, value, from); err != nil {
				return misused("--set %s %w", row.Name, err)
			}
			continue
		}
		return misused("--set: %w", d.Settings.Set(name, value, from))
	}
	if c.IsSet(configFlag) {
		if err := d.read(c.String(configFlag)); err != nil {
			return err
		}
	}
	runs := 1
	for _, axis := range d.axes {
		if runs *= len(axis.Values); runs > mostRuns {
			return misused("the lists make more than %d runs", mostRuns)
		}
	}
	return nil
}

// mostRuns limits the combinations of the values of axes.
const mostRuns = 10_000

// read adds the settings of a file.
func (d *commandLine) read(path string) error {
	entries, err := settings.Read(path)
	if err != nil {
		return misused("--config: %w", err)
	}
	for _, e := range entries {
		row := settings.Find(e.Name)
		if _, set := d.From(e.Name); set {
			continue
		}
		if e.Masked {
			return misused("--config: %s: %s may be secret and is masked: set it again", e.Place, e.Name)
		}
		texts := e.Texts
		if !row.Repeatable() && len(texts) != 1 {
			texts = []string{strings.Join(texts, ",")} // an axis
		}
		for _, text := range texts {
			if err := d.set(row, text, e.Place); err != nil {
				return misused("--config: %s: %s %w", e.Place, e.Name, err)
			}
		}
	}
	return nil
}

// misuse phrases an error about settings in the words of the command line: the flag, or the
// place in a file. Other errors stay.
func (d *commandLine) misuse(err error) error {
	var wrong *settings.Error
	if !errors.As(err, &wrong) {
		return err
	}
	return misused("%s", wrong.Named(func(name string) string {
		from, _ := d.From(name)
		switch {
		case strings.HasPrefix(from, "--"):
			return from
		case strings.Contains(from, ":"):
			return name + " (" + from + ")"
		case d.flags[name]:
			return "--" + name
		case settings.Find(name) != nil:
			return "--set " + name
		}
		return name
	}))
}

// viewOf returns how reports of runs with these settings show them.
func viewOf(c *cli.Context, s *settings.Settings) (v report.View, err error) {
	if findFlag(c.Command.Flags, "metrics") != nil && c.IsSet("metrics") {
		if v.Latencies, err = measure.ParseLatencies(c.String("metrics")); err != nil {
			return v, misused("--metrics: %w", err)
		}
	}
	if text := s.Output.Percentiles; text != "" {
		if v.Percentiles, err = report.ParsePercentiles(text); err != nil {
			return v, misused("--percentiles: %w", err)
		}
	}
	v.Gates, err = gatesOf(c, s)
	return v, err
}

// gatesOf parses the gates of a run. Without objectives there is no goodput.
func gatesOf(c *cli.Context, s *settings.Settings) (all []slo.Gate, err error) {
	for i, texts := range [][]string{s.Objectives.SLO, s.Objectives.FailIf} {
		for _, text := range texts {
			conditions, err := slo.ParseConditions(text)
			if err != nil {
				return nil, misused("--%s: %w", [...]string{"slo", "fail-if"}[i], err)
			}
			for _, condition := range conditions {
				all = append(all, slo.Gate{Condition: condition, Forbidden: i == 1, Force: s.Objectives.Force})
			}
		}
	}
	if _, err := experiment.GoodputOf(s); err != nil {
		return nil, misused("--goodput: %w", err)
	}
	for _, g := range all {
		switch {
		case g.Kind != slo.OfValue && c.Command.Name != "compare":
			return nil, misused("%s is a change between two runs, and --%s judges one", g.Condition, map[bool]string{true: "fail-if", false: "slo"}[g.Forbidden])
		case g.Metric.Goodput && s.Objectives.Goodput == "":
			return nil, errNoObjectives
		}
	}
	return all, nil
}

// deployment returns the simulated engines of the settings, and the file that they are from,
// nil without one.
func (d *commandLine) deployment() (engines engine.Deployment, file *fit.File, err error) {
	base := engine.Default()
	if d.EngineFile != "" {
		if file, err = fit.ReadFile(d.EngineFile); err != nil {
			return engines, nil, err
		}
		base = file.Deployment
	}
	if err = d.Settings.Check(); err == nil {
		engines, err = d.Deployment(base)
	}
	return engines, file, d.misuse(err)
}
