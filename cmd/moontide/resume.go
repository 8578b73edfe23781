package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/replay"
	"moontide/replay/runfile"
)

// ownFlags are those that a resumed run may have otherwise: they change nothing
// of what is sent and measured.
var ownFlags = []string{"out", "resume", "wait-ready", "api-key-env", "help"}

// setFlags are the flags that were given, as run.json keeps them.
func setFlags(c *cli.Context) (flags []string) {
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if !c.IsSet(name) || slices.Contains(ownFlags, name) {
			continue
		}
		for _, value := range flagValues(c, name) {
			if mask, secret := masks[name]; secret {
				value = mask(value)
			}
			flags = append(flags, "--"+name+"="+value)
		}
	}
	return flags
}

// flagValues are the values of a flag: one, or those of a list.
func flagValues(c *cli.Context, name string) []string {
	if list, ok := c.Value(name).(cli.StringSlice); ok {
		return list.Value()
	}
	return []string{fmt.Sprint(c.Value(name))}
}

// earlierRun is the run that --resume goes on with. A nil one is none.
type earlierRun struct {
	dir    string
	run    runfile.Run
	folder *runfile.Writer // once it is taken
	past   *replay.ResumeState
}

// openEarlier reads the run that --resume names, if it does, and gives the
// flags that were left out the values that they had. Those that are given have
// to be the same.
func openEarlier(c *cli.Context) (*earlierRun, error) {
	e := &earlierRun{dir: c.String("resume")}
	if !c.IsSet("resume") {
		return nil, nil
	}
	if c.IsSet("out") {
		return nil, misused("replay: --resume goes on in the folder of the run: --out has no part in it")
	}
	recorded, err := runfile.Open(e.dir)
	if err != nil {
		return nil, fmt.Errorf("--resume %s: %w", e.dir, err)
	}
	recorded.Close()
	e.run = recorded.Run
	switch run := e.run; {
	case run.Target.Virtual:
		return nil, fmt.Errorf("--resume %s: it is a simulation: run it again", e.dir)
	case run.Finished():
		return nil, fmt.Errorf("--resume %s: the run went to its end", e.dir)
	}
	return e, e.takeFlags(c)
}

// takeFlags gives flags that were left out the values of the earlier run, and
// refuses others.
func (e *earlierRun) takeFlags(c *cli.Context) error {
	was, given := byName(e.run.Flags), byName(setFlags(c))
	for name, values := range was {
		if given[name] != nil {
			continue
		}
		if _, secret := masks[name]; secret {
			return misused("replay: --resume %s: give --%s again: its values are not in the run's folder", e.dir, name)
		}
		for _, value := range values {
			if err := c.Set(name, value); err != nil {
				return fmt.Errorf("--resume %s: --%s=%s of %s: %w", e.dir, name, value, runfile.RunFile, err)
			}
		}
	}
	var others []string
	for name, values := range given {
		switch {
		case was[name] == nil:
			others = append(others, fmt.Sprintf("--%s was not given", name))
		case !slices.Equal(values, was[name]):
			others = append(others, fmt.Sprintf("--%s was %s", name, strings.Join(was[name], ", ")))
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		return misused("replay: --resume %s: the run was made with other flags: %s", e.dir, strings.Join(others, "; "))
	}
	return nil
}

// byName are the values of flags as setFlags has them.
func byName(flags []string) map[string][]string {
	values := map[string][]string{}
	for _, flag := range flags {
		name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		values[name] = append(values[name], value)
	}
	return values
}

// checkTrace returns why a trace is not that of the run, if it is not.
func (e *earlierRun) checkTrace(in input) error {
	switch {
	case e == nil:
		return nil
	case in.sha256 != e.run.Trace.SHA256:
		return fmt.Errorf("--resume %s: it is another trace: its SHA-256 is %s, that of the run's %s", e.dir, in.sha256, e.run.Trace.SHA256)
	case in.plan.Schedule != e.run.Schedule || in.plan.Rows != e.run.Rows:
		return fmt.Errorf("--resume %s: this version makes another schedule of the trace than %s did", e.dir, e.run.Version)
	}
	return nil
}

// take opens the folder for what is left of the run, so that no other process
// does, and reads what the run has done.
func (e *earlierRun) take(in input) (err error) {
	if e == nil {
		return nil
	}
	if e.folder, err = runfile.Resume(e.dir); err != nil {
		return err
	}
	if err := e.readPast(in); err != nil {
		e.release()
		return fmt.Errorf("--resume %s: %w", e.dir, err)
	}
	return nil
}

// release closes the folder, if it was taken. Once the run has closed it, there
// is nothing left to do.
func (e *earlierRun) release() {
	if e != nil && e.folder != nil {
		e.folder.Close()
	}
}

func (e *earlierRun) readPast(in input) error {
	recorded, err := runfile.Open(e.dir)
	if err != nil {
		return err
	}
	defer recorded.Close()
	e.run = recorded.Run // as it is now that nobody else changes it
	if e.past, err = replay.ReadResumeState(recorded.Records(), in.plan); err != nil {
		return err
	}
	if d := e.run.Limits.DurationSeconds; d > 0 && e.past.Clock.Seconds() >= d {
		return fmt.Errorf("the run's --duration %gs had passed when it ended: nothing is left to be sent", d)
	}
	return nil
}

// goOn notes in run.json that the run goes on, and what this process has
// learned. The rest stays as it was.
func (e *earlierRun) goOn(run *runfile.Run) error {
	again := max(e.run.Sent-e.past.Rows, 0)
	run.Resumed = append(e.run.Resumed, runfile.Resumption{
		At: time.Now(), RowsDone: e.past.Rows, SentAgain: again, ClockMS: milliseconds(e.past.Clock),
	})
	run.Started, run.Command = e.run.Started, e.run.Command
	run.Warmup += e.run.Warmup
	run.Notes = append(run.Notes, fmt.Sprintf("it was resumed: %d requests had ended, %d that were in flight were sent again; the pause is in no figure", e.past.Rows, again))
	for _, note := range e.run.Notes {
		if !slices.Contains(run.Notes, note) {
			run.Notes = append(run.Notes, note)
		}
	}
	if err := e.folder.WriteRun(*run); err != nil {
		return fmt.Errorf("--resume %s: %w", e.dir, err)
	}
	return nil
}
