package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/replay/cluster"
	"moontide/replay/experiment"
	"moontide/replay/runfile"
	"moontide/trace"
)

// Flags of a run of several processes.
const (
	partFlag       = "part"
	partByFlag     = "part-by"
	rendezvousFlag = "rendezvous"
	timeoutFlag    = "rendezvous-timeout"
	autoPart       = "auto"
)

// partFlags returns the flags of a run of several processes.
func partFlags() []cli.Flag {
	return group(inParts,
		&cli.StringFlag{Name: partFlag, Usage: "send part `i/n` of the requests, with i from 1, while other processes send the others; auto takes i and n from Slurm, MPI or a Kubernetes Indexed Job"},
		&choiceFlag{
			StringFlag: cli.StringFlag{Name: partByFlag, Value: trace.BySession, Usage: "`UNIT` that is never split between parts: %s"},
			Choices:    oneOf(trace.PartUnits()...).Noted(trace.ByRequest, "with what waits for it").Noted(trace.ByPrefix, "sessions that begin with the same block"),
		},
		&cli.StringFlag{Name: rendezvousFlag, Usage: "`HOST:PORT` on which part 1 listens for the others", DefaultText: "any port, which part 1 writes next to --out"},
		&cli.DurationFlag{Name: timeoutFlag, Value: cluster.DefaultTimeout, Usage: "fail if a part has not arrived after `TIME`"},
	)
}

// follows reports whether another process leads the run and shows its progress.
func follows(c *cli.Context) (bool, error) {
	if !c.IsSet(partFlag) {
		return false, nil
	}
	job, err := jobOf(c)
	return job.Part > 1, err
}

// joinRun joins the run of which this process is a part. leave must be called with the
// error of the run. If it is no part, it does nothing.
func joinRun(c *cli.Context, stop stop, cfg *experiment.Config) (leave func(error), err error) {
	joined, m := func(error) {}, cfg.Part
	if m == nil {
		return joined, nil
	}
	m.Version, cfg.Dir = cfg.Version, m.Dir
	var unsuitable error
	if m.Number == 1 && !c.IsSet("resume") { // before the others make folders in it
		unsuitable = runfile.CheckFolder(m.Dir)
	}
	if cfg.Member, err = cluster.Join(stop.gently, *m); err != nil {
		return joined, err
	}
	if unsuitable != nil { // for all parts
		cfg.Member.Close(unsuitable)
		return joined, unsuitable
	}
	return cfg.Member.Close, nil
}

// partConfig parses the flags of a part. It returns nil without --part.
func partConfig(c *cli.Context, std streams, path string) (*cluster.Config, error) {
	if !c.IsSet(partFlag) {
		if flag := firstGivenOf(c, words("part-by rendezvous rendezvous-timeout")...); flag != "" {
			return nil, misused("%s: --%s needs --part", c.Command.Name, flag)
		}
		return nil, nil
	}
	job, err := jobOf(c)
	if err != nil {
		return nil, err
	}
	m := &cluster.Config{
		Number: job.Part, Of: job.Of, By: c.String(partByFlag), OneMachine: job.OneMachine,
		Address: c.String(rendezvousFlag), Token: os.Getenv(cluster.TokenVariable),
		Timeout: c.Duration(timeoutFlag), Message: func(text string) { std.say("%s", text) },
	}
	switch m.Dir = c.String(outFlag.Name); {
	case m.Dir != "":
	case c.IsSet("resume") && c.String("resume") != autoResume:
		m.Dir = c.String("resume")
	case job.Name == "":
		return nil, misused("%s: --part needs --out: the folder of the whole run, the same for all parts", c.Command.Name)
	default:
		m.Dir = filepath.Join("runs", job.Name+"-"+baseName(path))
	}
	return m, nil
}

// jobOf returns the number of this part and that of all.
func jobOf(c *cli.Context) (job cluster.Job, err error) {
	text := c.String(partFlag)
	if text != autoPart {
		i, n, err := parsePart(text)
		if err != nil || text == "" {
			return job, misused("%s: --part %q is neither auto nor i/n with i from 1 to n", c.Command.Name, text)
		}
		return cluster.Job{Part: i + 1, Of: n}, nil
	}
	job, err = cluster.Detect(environmentMap())
	switch {
	case errors.Is(err, cluster.ErrNoJob):
		return job, misused("%s: --part auto: %w: give --part i/n", c.Command.Name, err)
	case err != nil:
		return job, misused("%s: --part auto: %w", c.Command.Name, err)
	}
	return job, nil
}

func environmentMap() map[string]string {
	env := map[string]string{}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = value
	}
	return env
}

// sayPart prints the outcome of a part other than part 1, which reports.
func sayPart(std streams, m *cluster.Part, result *experiment.Result) {
	where, dir := "part 1 reports the run", cmp.Or(filepath.Dir(result.Dir), ".")
	if ended := (*cluster.EndedError)(nil); errors.As(m.Err(), &ended) {
		where = fmt.Sprintf("what there is of the run: moontide report %s", dir)
	}
	std.say("part %d of %d sent %d of %d requests, recorded in %s; %s", m.Number, m.Of, result.Run.Sent, result.Run.Rows, result.Dir, where)
}
