package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"moontide/.ci/results"
	analysis "moontide/analyze/measure"
	"moontide/replay"
	"moontide/replay/experiment"
	"moontide/replay/runfile"
)

// outcome is what a run of moontide left: without one, no metrics and records.
type outcome struct {
	exit int
	text string // standard output and error
	dir  string
	*analysis.Result
	records []replay.Record // by row
	grew    page            // how much each of the server's metrics has grown, the probe included
}

// evidence returns the text of a check of the verdict, or "".
func (o *outcome) evidence(check string) string {
	for _, e := range o.Verdict.Evidence {
		if e.Check == check {
			return e.Level.String() + ": " + e.Text
		}
	}
	return ""
}

// keyVariable is the environment variable with the server's API key.
const keyVariable = "ENGINE_KEY"

// flags splits the flags of a replay. URL stands for the server's address and TOKENIZER for
// the tokenizer of its model.
func (s *session) flags(text string) []string {
	words := strings.Fields(text)
	for i, word := range words {
		switch word {
		case "URL":
			words[i] = s.server.url
		case "TOKENIZER":
			words[i] = filepath.Join(s.tools.models, s.server.opts.model.name, "tokenizer.json")
		}
	}
	return words
}

// command is a replay of a trace. The words after the trace are flags.
func (s *session) command(path string, flags ...string) *exec.Cmd {
	cmd := preferred(s.tools.moontide, append([]string{"replay", path, "--url", s.server.url}, flags...)...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1", keyVariable+"="+s.server.opts.key)
	return cmd
}

// folder returns a new folder for a run of a check.
func (s *session) folder(name string) (string, error) {
	dir := filepath.Join(s.tools.out, s.engine.name, results.Slug(s.check.name), name)
	return dir, errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Dir(dir), 0o755))
}

// prepare returns a replay of rows, whose trace is beside the new folder of the run. Prompts
// differ from those of other replays unless the flags have a salt.
func (s *session) prepare(name string, rows []row, flags ...string) (cmd *exec.Cmd, dir string, err error) {
	if dir, err = s.folder(name); err != nil {
		return nil, "", err
	}
	args := []string{"--block-size", fmt.Sprint(traceBlock), "--out", dir}
	if !slices.Contains(flags, "--salt") {
		args = append(args, "--salt", s.check.name+" "+name)
	}
	path := dir + ".jsonl"
	return s.command(path, append(args, flags...)...), dir, results.WriteTrace(path, rows)
}

// replay replays rows against the session's server.
func (s *session) replay(name string, rows []row, flags ...string) (*outcome, error) {
	cmd, dir, err := s.prepare(name, rows, flags...)
	if err != nil {
		return nil, err
	}
	before, err := s.server.metrics()
	if err != nil {
		return nil, err
	}
	o, err := s.finish(cmd, dir)
	if err != nil {
		return nil, err
	}
	after, err := s.server.metrics()
	o.grew = after.since(before)
	return o, err
}

// finish runs a command and reads the folder of its run.
func (s *session) finish(cmd *exec.Cmd, dir string) (*outcome, error) {
	text, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return nil, err
	}
	o := &outcome{exit: cmd.ProcessState.ExitCode(), text: string(text), dir: dir, Result: &analysis.Result{}}
	return o, errors.Join(os.WriteFile(dir+".out", text, 0o644), o.read())
}

// read reads the run's folder. Without one there is nothing to read: the command
// stopped before the run.
func (o *outcome) read() error {
	if _, err := os.Stat(filepath.Join(o.dir, runfile.SummaryFile)); err != nil {
		return nil
	}
	m, err := experiment.Measure(experiment.MeasureConfig{EachPrediction: true}, o.dir)
	if err != nil {
		return err
	}
	o.Result = m.Metrics
	r, err := runfile.Open(o.dir)
	if err != nil {
		return err
	}
	defer r.Close()
	for rec, err := range r.Records() {
		if err != nil {
			return err
		}
		o.records = append(o.records, rec)
	}
	slices.SortFunc(o.records, func(a, b replay.Record) int { return cmp.Compare(a.Row, b.Row) })
	return nil
}

// reason returns the first line of the output that has all of some words. The line of an
// error has what follows it.
func (o *outcome) reason(words ...string) string {
	const program = "moontide: "
	for line := range strings.Lines(o.text) {
		if _, rest, ok := strings.Cut(o.text, line); ok && o.exit == 1 && strings.HasPrefix(line, program) {
			line += rest
		}
		line = strings.Join(strings.Fields(strings.TrimPrefix(line, program)), " ")
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
			return line
		}
	}
	return ""
}
