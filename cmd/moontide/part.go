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
	"moontide/trace"
)

const autoPart = "auto"

// partOf returns the part of a run that this process is, nil if it is no part.
func partOf(c *cli.Context, std streams, d *commandLine) (*cluster.Config, error) {
	if d.Parts.Part == "" {
		return nil, nil
	}
	job, err := jobOf(c, d.Parts.Part)
	if err != nil {
		return nil, err
	}
	m := &cluster.Config{
		Number: job.Part, Of: job.Of, By: cmp.Or(d.Parts.By, trace.BySession), OneMachine: job.OneMachine,
		Address: d.Parts.Rendezvous, Token: os.Getenv(cluster.TokenVariable),
		Timeout: d.Parts.Timeout, Message: func(text string) { std.say("%s", text) },
	}
	switch m.Dir = d.Output.Dir; {
	case m.Dir != "":
	case c.IsSet(resumeFlag) && c.String(resumeFlag) != autoResume:
		m.Dir = c.String(resumeFlag)
	case job.Name == "":
		return nil, misused("--part needs --out: the folder of the whole run, the same for all parts")
	default:
		m.Dir = filepath.Join("runs", job.Name+"-"+baseName(d.Trace.Path))
	}
	return m, nil
}

// jobOf returns the number of this part and that of all.
func jobOf(c *cli.Context, text string) (job cluster.Job, err error) {
	if text != autoPart {
		i, n, err := parsePart(text)
		if err != nil || text == "" {
			return job, misused("--part %q is neither auto nor i/n with i from 1 to n", text)
		}
		return cluster.Job{Part: i + 1, Of: n}, nil
	}
	job, err = cluster.Detect(environmentMap())
	switch {
	case errors.Is(err, cluster.ErrNoJob):
		return job, misused("--part auto: %w: give --part i/n", err)
	case err != nil:
		return job, misused("--part auto: %w", err)
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
		where = fmt.Sprintf("what there is of the run is in %s", dir)
	}
	std.say("part %d of %d sent %d of %d requests, recorded in %s; %s", m.Number, m.Of, result.Run.Sent, result.Run.Rows, result.Dir, where)
}
