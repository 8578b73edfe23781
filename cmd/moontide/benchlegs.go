package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report"
	"moontide/analyze/run"
	"moontide/replay/bench"
	"moontide/replay/runfile"
	"moontide/synth/spec"
	"moontide/trace"
)

// sweeper drives the legs of a sweep. A leg is what could be done by hand with
// moontide synth and moontide replay: it takes their command lines, made from
// that of the bench.
type sweeper struct {
	c    *cli.Context
	std  streams
	stop stop
	plan bench.Sweep
	dir  string

	legs   []preparedLeg
	points map[string][]report.SweepPoint // by label
	last   runfile.Run                    // the last one that was measured
	result *run.Result                    // of it
}

// preparedLeg is a leg with what its requests are drawn from, and where it
// goes.
type preparedLeg struct {
	bench.Leg
	description *spec.Spec
	bench.Attempt
}

// description is what the requests of a leg are drawn from: what moontide synth
// would draw from with the same flags.
func (s *sweeper) description(leg bench.Leg) (*spec.Spec, error) {
	own := map[string]string{rateFlag: "", durationFlag.Name: "", "num-requests": strconv.Itoa(leg.Prompts)}
	if size := sharedBlocks(s.c); size > 0 {
		own[blockSizeFlag.Name] = strconv.Itoa(size)
	}
	if leg.Axis == bench.Rate {
		own[rateFlag] = bench.FormatLevel(leg.Level)
	}
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	for _, f := range append(describeFlags(), sharedFlags()...) {
		if err := f.Apply(set); err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
		name := f.Names()[0]
		value, mine := own[name]
		if !mine && s.c.IsSet(name) {
			value = fmt.Sprint(s.c.Value(name))
		}
		if value == "" {
			continue
		}
		if err := set.Set(name, value); err != nil {
			return nil, misused("bench: --%s: %w", name, err)
		}
	}
	return readDescription(cli.NewContext(s.c.App, set, nil), s.std)
}

// sharedBlocks is the block size with which prompts begin alike for as long as
// the flags say, as only whole blocks are shared: what divides the shared prompt,
// or a size that engines have. It is 0 where flags or a description say it, and
// where nothing is shared.
func sharedBlocks(c *cli.Context) int {
	const engines, most = 16, trace.DefaultBlockSize
	if c.IsSet(blockSizeFlag.Name) || c.IsSet(specFlag.Name) || !c.IsSet("shared-len") && !c.IsSet("turns") {
		return 0
	}
	shared, err := strconv.Atoi(c.String("shared-len"))
	if err != nil || shared < 1 || c.IsSet("turns") {
		return engines
	}
	for size := min(shared, most); size >= engines; size-- {
		if shared%size == 0 {
			return size
		}
	}
	return shared
}

// prepare finds out everything that can be wrong with a leg, before anything is
// sent or written.
func (s *sweeper) prepare() error {
	for _, leg := range s.plan.Legs() {
		if _, err := checkOpenFiles(openFilesLimit(), leg.Prompts, leg.MaxConcurrency, leg.Target.URL == ""); err != nil {
			return err
		}
		d, err := s.description(leg)
		if err != nil {
			return err
		}
		s.legs = append(s.legs, preparedLeg{Leg: leg, description: d})
	}
	return nil
}

// locate finds the runs that are there already, and where the others go.
func (s *sweeper) locate() error {
	for i, leg := range s.legs {
		file, remove, err := s.draw(leg)
		if err != nil {
			return err
		}
		digest, err := digestFile(file)
		remove()
		if err != nil {
			return err
		}
		if s.legs[i].Attempt, err = leg.Leg.Attempt(s.dir, s.c.String("salt"), digest); err != nil {
			return err
		}
	}
	return nil
}

// run drives the legs that are not there yet and shows them all. It ends at the
// first that cannot be driven; what was measured until then is shown.
func (s *sweeper) run() error {
	var failed error
	level := run.Valid
	for i, leg := range s.legs {
		fmt.Fprintf(s.std.err, "moontide: run %d of %d: %v, %d requests\n", i+1, len(s.legs), leg.Leg, leg.Prompts)
		if failed = s.drive(leg); failed != nil {
			failed = fmt.Errorf("%v: %w", leg.Leg, failed)
			break
		}
		level = max(level, s.result.Verdict.Level)
	}
	fmt.Fprintf(s.std.err, "moontide: the runs are in %s\n", s.dir)
	if s.result != nil {
		failed = errors.Join(failed, s.show())
	}
	if failed == nil && level == run.Invalid {
		return errInvalid
	}
	return failed
}

// drive replays a leg, unless that was done, and measures the run.
func (s *sweeper) drive(leg preparedLeg) error {
	if leg.Done {
		fmt.Fprintf(s.std.err, "moontide: it is there already: %s\n", leg.Dir)
	} else {
		if leg.Invalid != "" {
			fmt.Fprintf(s.std.err, "moontide: it is run again, for %s is INVALID\n", leg.Invalid)
		}
		if err := s.replay(leg); err != nil && !errors.Is(err, errInvalid) {
			return s.unable(leg, err)
		}
	}
	info, result, err := measure(s.std, leg.Dir, func(*runfile.Run) {}, false)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.std.err, "moontide: %s\n", harmless(report.SweepLine(result)))
	if result.Cache.Prediction.Causes[run.Warm].Requests > 0 {
		fmt.Fprintf(s.std.err, "moontide: the server knew prompts of an earlier run: another --salt, and --out, sends new ones\n")
	}
	s.last, s.result = info, result
	label := leg.Target.Label
	point := report.SweepPoint{Level: bench.FormatLevel(leg.Level), Result: result}
	if info.Window != (runfile.Window{}) && result.Window == (run.Span{}) {
		point.Notes = append(point.Notes, "all of the run is measured, for its warm-up and cool-down leave nothing of it")
	}
	s.points[label] = append(s.points[label], point)
	return nil
}

// unable says why a leg was not driven to its end, after what its requests met
// with, as far as that is known.
func (s *sweeper) unable(leg preparedLeg, err error) error {
	if misuse := (usageError{}); errors.As(err, &misuse) {
		return err
	}
	if _, result, unread := measure(s.std, leg.Dir, func(*runfile.Run) {}, false); unread == nil && result.Failed > 0 {
		fmt.Fprintf(s.std.err, "moontide: %s\n", harmless(report.SweepLine(result)))
	}
	return fmt.Errorf("%w; the same command with --out %s goes on from here", err, s.dir)
}

// draw writes the trace of a leg.
func (s *sweeper) draw(leg preparedLeg) (file string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "moontide-bench-")
	if err != nil {
		return "", nil, fmt.Errorf("drawing requests: %w", err)
	}
	remove = func() { os.RemoveAll(dir) }
	file = filepath.Join(dir, leg.Name+".jsonl")
	if _, err := writeWith(s.std, file, writeDescription(s.c, leg.description)); err != nil {
		remove()
		return "", nil, err
	}
	return file, remove, nil
}

// replay is the run of a leg.
func (s *sweeper) replay(leg preparedLeg) error {
	file, remove, err := s.draw(leg)
	if err != nil {
		return err
	}
	defer remove()
	own := map[string]string{
		"salt": leg.Salt, outFlag.Name: leg.Dir, "url": leg.Target.URL,
		blockSizeFlag.Name: strconv.Itoa(leg.description.BlockSize()),
	}
	if leg.Axis == bench.Concurrency {
		own[closedFlag.Name] = "true"
	} else {
		own[drawnRateFlag.Name] = bench.FormatLevel(leg.Level)
	}
	if leg.MaxConcurrency > 0 {
		own[maxConcurrencyFlag.Name] = strconv.Itoa(leg.MaxConcurrency)
	}
	args, notPassedOn := []string{"moontide", "replay"}, ofReplays()
	for _, f := range replayCommand(s.std, s.stop).Flags {
		name := f.Names()[0]
		value, mine := own[name]
		switch {
		case mine && value != "":
			args = append(args, "--"+name+"="+value)
		case !mine && s.c.IsSet(name) && !slices.Contains(notPassedOn, name):
			for _, value := range flagValues(s.c, name) {
				args = append(args, "--"+name+"="+value)
			}
		}
	}
	quiet := s.std
	quiet.out = io.Discard // the sweep has a table of its own
	return newApp(quiet, s.stop).RunContext(s.c.Context, append(args, "--", file))
}

// show prints what was measured, in the form that was asked for. One run alone
// is also shown as a replay shows it.
func (s *sweeper) show() error {
	sweep := s.report()
	if s.c.IsSet("png") {
		if err := writeFile(s.std, s.c.String("png"), sweep.PNG); err != nil {
			return err
		}
	}
	switch {
	case s.c.String("png") == "-":
		return nil
	case s.c.Bool("markdown"):
		return sweep.Markdown(s.std.out)
	case s.c.Bool("csv"):
		return sweep.CSV(s.std.out)
	}
	if len(s.legs) == 1 {
		if err := report.ServingText(s.std.out, s.last, s.result); err != nil {
			return err
		}
		fmt.Fprintln(s.std.out)
	}
	return sweep.Text(s.std.out)
}

func (s *sweeper) report() report.Sweep {
	sweep := report.Sweep{Subject: s.subject(), Axis: "Concurrency"}
	if s.plan.Axis == bench.Rate {
		sweep.Axis = "Request Rate (req/s)"
	}
	for _, t := range s.plan.Targets {
		sweep.Deployments = append(sweep.Deployments, report.Deployment{Label: t.Label, Points: s.points[t.Label]})
	}
	return sweep
}

// subject says what the runs have in common.
func (s *sweeper) subject() string {
	var words []string
	for _, f := range describeFlags() {
		name := f.Names()[0]
		if name == rateFlag || name == durationFlag.Name || !s.c.IsSet(name) {
			continue
		}
		label := name
		if name == "isl" || name == "osl" {
			label = strings.ToUpper(name)
		}
		words = append(words, label+" "+s.c.String(name))
	}
	target := s.last.Target
	model := "model " + target.Model
	if target.Simulated {
		model += " on the embedded simulated endpoint"
	}
	words = append(words, model)
	return strings.Join(words, ", ")
}
