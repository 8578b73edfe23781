package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/replay/bench"
	"moontide/replay/cluster"
	"moontide/trace"
)

// Flags of a run of several processes.
const (
	partFlag       = "part"
	partByFlag     = "part-by"
	rendezvousFlag = "rendezvous"
	startAtFlag    = "start-at"
	timeoutFlag    = "rendezvous-timeout"
	allowLostFlag  = "allow-lost-parts"
	autoPart       = "auto"
)

// partFlags returns the flags of the verbs that several processes can execute as one
// run.
func partFlags() []cli.Flag {
	return group(inParts,
		&cli.StringFlag{Name: partFlag, Usage: "send part `i/n` of the requests, with i from 1, while other processes send the others; auto takes i and n from Slurm, MPI or a Kubernetes Indexed Job"},
		&choiceFlag{
			StringFlag: cli.StringFlag{Name: partByFlag, Value: trace.BySession, Usage: "`UNIT` that is never split between parts: %s"},
			Choices:    oneOf(trace.Deals()...).Noted(trace.ByRequest, "with what waits for it").Noted(trace.ByPrefix, "sessions that begin with the same block"),
		},
		&cli.StringFlag{Name: rendezvousFlag, Usage: "`HOST:PORT` on which part 1 listens for the others", DefaultText: "any port, which part 1 writes next to --out"},
		&cli.StringFlag{Name: startAtFlag, Usage: "start at `TIME`, such as 2026-01-31T12:00:00Z; without --rendezvous, parts do not contact each other, and clocks must be synchronized"},
		&cli.DurationFlag{Name: timeoutFlag, Value: cluster.DefaultTimeout, Usage: "fail if a part has not arrived after `TIME`"},
		&cli.BoolFlag{Name: allowLostFlag, Usage: "continue if parts are lost; the run is then INVALID"},
	)
}

// follows reports whether another process leads the run and shows its progress.
func follows(c *cli.Context) (bool, error) {
	if !c.IsSet(partFlag) {
		return false, nil
	}
	place, err := placeOf(c)
	return place.Number > 1 && !alone(c, place), err
}

// alone reports whether the parts start at a given time without meeting.
func alone(c *cli.Context, place cluster.Place) bool {
	return c.IsSet(startAtFlag) && (place.NotTogether || c.String(partFlag) != autoPart) && c.String(rendezvousFlag) == ""
}

// joinRun joins the run of which --part makes this process a part. leave must be
// called with the error of the run. Without --part it does nothing. suitable checks the
// folder of the run in part 1.
func joinRun(c *cli.Context, std streams, stop stop, path string, cfg *bench.Config, suitable func(dir string) error) (leave func(error), err error) {
	joined := func(error) {}
	if !c.IsSet(partFlag) {
		if flag := firstGivenOf(c, words("part-by rendezvous start-at rendezvous-timeout allow-lost-parts")...); flag != "" {
			return joined, misused("%s: --%s needs --part", c.Command.Name, flag)
		}
		return joined, nil
	}
	m, err := partConfig(c, std, path)
	if err != nil {
		return joined, err
	}
	m.Version, cfg.Dir = cfg.Version, m.Dir
	var unsuitable error
	if m.Number == 1 && !c.IsSet("resume") { // before the others make folders in it
		unsuitable = suitable(m.Dir)
	}
	if cfg.Member, err = cluster.Join(stop.gently, m); err != nil {
		return joined, err
	}
	if unsuitable != nil { // the others learn it, too
		cfg.Member.Close(unsuitable)
		return joined, unsuitable
	}
	return cfg.Member.Close, nil
}

// partConfig parses the flags of a part.
func partConfig(c *cli.Context, std streams, path string) (m cluster.Config, err error) {
	place, err := placeOf(c)
	if err != nil {
		return m, err
	}
	m = cluster.Config{
		Number: place.Number, Of: place.Of, By: c.String(partByFlag), OneMachine: place.OneMachine,
		Address: c.String(rendezvousFlag), Token: os.Getenv(cluster.TokenVariable),
		Timeout: c.Duration(timeoutFlag), AllowLost: c.Bool(allowLostFlag),
		Message: func(text string) { std.say("%s", text) },
	}
	if c.IsSet(startAtFlag) {
		if m.StartAt, err = time.Parse(time.RFC3339Nano, c.String(startAtFlag)); err != nil {
			return m, misused("%s: --start-at %q is not a time such as 2026-01-31T12:00:00Z", c.Command.Name, c.String(startAtFlag))
		}
	}
	m.Alone = alone(c, place)
	switch m.Dir = c.String(outFlag.Name); {
	case m.Dir != "":
	case c.IsSet("resume") && c.String("resume") != autoResume:
		m.Dir = c.String("resume")
	case place.Job == "":
		return m, misused("%s: --part needs --out: the folder of the whole run, the same for all parts", c.Command.Name)
	default:
		m.Dir = filepath.Join("runs", place.Job+"-"+baseName(path))
	}
	return m, nil
}

// placeOf returns which part of how many this process is.
func placeOf(c *cli.Context) (place cluster.Place, err error) {
	text := c.String(partFlag)
	if text != autoPart {
		i, n, err := parsePart(text)
		if err != nil || text == "" {
			return place, misused("%s: --part %q is neither auto nor i/n with i from 1 to n", c.Command.Name, text)
		}
		return cluster.Place{Number: i + 1, Of: n}, nil
	}
	place, err = cluster.Detect(environmentMap())
	switch {
	case errors.Is(err, cluster.ErrNoPlace):
		return place, misused("%s: --part auto: %w: give --part i/n", c.Command.Name, err)
	case err != nil:
		return place, misused("%s: --part auto: %w", c.Command.Name, err)
	case place.NotTogether && !c.IsSet(startAtFlag):
		return place, misused("%s: --part auto: the tasks of a %s may start at different times: give them a start with --start-at, or use srun", c.Command.Name, place.Engine)
	}
	return place, nil
}

func environmentMap() map[string]string {
	env := map[string]string{}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = value
	}
	return env
}

// sayPart tells the outcome of a part that does not lead: part 1 reports.
func sayPart(std streams, m *cluster.Member, result *bench.Result) {
	where, dir := "part 1 reports the run", cmp.Or(filepath.Dir(result.Dir), ".")
	var ended *cluster.EndedError
	switch {
	case m.Alone:
		where = fmt.Sprintf("report the run with: moontide report --merge %s/part-*", dir)
	case errors.As(m.Err(), &ended):
		where = fmt.Sprintf("what there is of the run: moontide report %s", dir)
	}
	std.say("part %d of %d sent %d of %d requests, recorded in %s; %s", m.Number, m.Of, result.Run.Sent, result.Run.Rows, result.Dir, where)
}

// joinSweep is joinRun for a sweep or a search.
func joinSweep(c *cli.Context, std streams, stop stop, path string, cfg *bench.SweepConfig) (leave func(error), err error) {
	name := path
	if name == "" {
		name = "bench"
	}
	leave, err = joinRun(c, std, stop, name, &cfg.Run, func(string) error { return nil })
	m := cfg.Run.Member
	switch {
	case err != nil || m == nil:
		return leave, err
	case m.Alone:
		return leave, misused("%s: the parts must meet: give --rendezvous", c.Command.Name)
	case !m.Leads():
		cfg.Run.Observer = bench.Observer{}
	}
	cfg.Dir = m.Dir
	return leave, nil
}

// followSweep takes part in the runs on which part 1 decides.
func followSweep(std streams, stop stop, cfg bench.SweepConfig, leave func(error)) error {
	m := cfg.Run.Member
	runs, err := bench.FollowSweep(stop.now, cfg)
	leave(err)
	std.say("part %d of %d took part in %d runs, recorded in %s; part 1 reports them", m.Number, m.Of, runs, cfg.Dir)
	return err
}
