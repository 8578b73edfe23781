package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"moontide/.ci/results"
	"moontide/replay"
	"moontide/replay/runfile"
)

// row is a request of a check's trace.
type row struct {
	Timestamp float64  `json:"timestamp"`
	ISL       int      `json:"input_length"`
	OSL       int      `json:"output_length"`
	IDs       []uint64 `json:"hash_ids"`
	Session   string   `json:"session_id,omitempty"`
	ID        string   `json:"request_id,omitempty"`
	After     []string `json:"after,omitempty"`
	Delay     float64  `json:"delay,omitempty"`
}

// shared is a trace of n requests, every one of which begins as an earlier one does.
// gap is the time between arrivals in milliseconds.
func shared(n int, gap float64) (rows []row) {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	next := uint64(100)
	for i := range n {
		r := row{Timestamp: float64(i) * gap, ISL: 100 + rng.IntN(500), OSL: 2 + rng.IntN(20)}
		if i > 0 {
			from := rows[rng.IntN(i)]
			r.IDs = slices.Clone(from.IDs[:min(rng.IntN(len(from.IDs)+1), r.ISL/traceBlock)])
		}
		for len(r.IDs)*traceBlock < r.ISL {
			r.IDs = append(r.IDs, next)
			next++
		}
		rows = append(rows, r)
	}
	return rows
}

// equal is a trace of n requests of one length that share nothing.
func equal(n, isl, osl int, gap float64) (rows []row) {
	for i := range n {
		r := row{Timestamp: float64(i) * gap, ISL: isl, OSL: osl}
		for j := 0; j*traceBlock < isl; j++ {
			r.IDs = append(r.IDs, uint64(i*1000+j))
		}
		rows = append(rows, r)
	}
	return rows
}

// conversations are sessions of several turns, each of which begins with the turn
// before and follows it after a delay in milliseconds.
func conversations(sessions, turns int, delay float64) (rows []row) {
	for s := range sessions {
		var ids []uint64
		for turn := range turns {
			for range 2 {
				ids = append(ids, uint64(s*1000+len(ids)))
			}
			r := row{Timestamp: float64(s) * 50, ISL: len(ids)*traceBlock - 13, OSL: 12, IDs: slices.Clone(ids), Session: fmt.Sprint("s", s)}
			if turn > 0 {
				r.Delay = delay
			}
			rows = append(rows, r)
		}
	}
	return rows
}

func prompts(rows []row, before, added int) (all []prompt) {
	for _, r := range rows {
		all = append(all, prompt{ids: r.IDs, isl: r.ISL, osl: r.OSL, before: before, added: added})
	}
	return all
}

func writeTrace(path string, rows []row) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for _, r := range rows {
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// outcome is what a run of moontide left.
type outcome struct {
	exit    int
	text    string // standard output and error
	dir     string
	summary summary
	records []replay.Record // by row
}

// summary is a part of summary.json.
type summary struct {
	Completed int     `json:"completed"`
	Failed    int     `json:"failed"`
	MeanTPOT  float64 `json:"mean_tpot_ms"`
	Input     int     `json:"total_input_tokens"`
	Output    int     `json:"total_output_tokens"`
	Moontide  struct {
		Verdict  string  `json:"verdict"`
		Cached   int     `json:"cached_tokens"`
		PerToken float64 `json:"mean_itl_per_token_ms"`
		Evidence []struct{ Check, Level, Text string }
		Cache    struct {
			Causes map[string]struct{ Requests, Tokens int }
			Block  int `json:"server_block_size"`
		}
		Server struct {
			Engine  string `json:"engine"`
			Queried int    `json:"queried_tokens"`
			Hit     int    `json:"hit_tokens"`
		}
	} `json:"moontide"`
}

// evidence returns the text of a check of the verdict, or "".
func (o *outcome) evidence(check string) string {
	for _, e := range o.summary.Moontide.Evidence {
		if e.Check == check {
			return e.Level + ": " + e.Text
		}
	}
	return ""
}

// keyVariable is the environment variable with the server's API key.
const keyVariable = "ENGINE_KEY"

// command is a moontide command of a check. The words after the trace are flags.
func (s *session) command(dir string, args ...string) *exec.Cmd {
	args = append([]string{"replay"}, args...)
	cmd := preferred(s.tools.moontide, append(args, "--out", dir)...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1", keyVariable+"="+s.server.opts.key)
	return cmd
}

// folder returns a new folder for a run of a check.
func (s *session) folder(name string) (string, error) {
	dir := filepath.Join(s.tools.out, s.engine.name, results.Slug(s.check), name)
	return dir, errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Dir(dir), 0o755))
}

// written returns a new folder for a run, and the file beside it with the run's trace.
func (s *session) written(name string, rows []row) (dir, path string, err error) {
	if dir, err = s.folder(name); err != nil {
		return "", "", err
	}
	path = dir + ".jsonl"
	return dir, path, writeTrace(path, rows)
}

// measured replays rows in a run that completes, and returns how much each of the
// server's metrics has grown meanwhile, the probe included.
func (s *session) measured(name string, rows []row, flags ...string) (o *outcome, grew page, err error) {
	before, err := s.server.metrics()
	if err != nil {
		return nil, nil, err
	}
	if o, err = s.run(name, rows, flags...); err != nil {
		return nil, nil, err
	}
	after, err := s.server.metrics()
	if err != nil {
		return nil, nil, err
	}
	return o, after.since(before), nil
}

// run replays rows in a run that ends well.
func (s *session) run(name string, rows []row, flags ...string) (*outcome, error) {
	o, err := s.replay(name, rows, flags...)
	if err != nil {
		return nil, err
	}
	if err := o.ran(); err != nil {
		return nil, err
	}
	s.trusted(o)
	return o, nil
}

// replay replays rows against the session's server. Prompts differ from those of
// other checks unless the flags have a salt.
func (s *session) replay(name string, rows []row, flags ...string) (*outcome, error) {
	dir, path, err := s.written(name, rows)
	if err != nil {
		return nil, err
	}
	args := []string{path, "--url", s.server.url, "--block-size", fmt.Sprint(traceBlock)}
	if !slices.Contains(flags, "--salt") {
		args = append(args, "--salt", s.check+" "+name)
	}
	return s.finish(s.command(dir, append(args, flags...)...), dir)
}

// finish runs a command and reads the folder of its run.
func (s *session) finish(cmd *exec.Cmd, dir string) (*outcome, error) {
	text, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return nil, err
	}
	o := &outcome{exit: cmd.ProcessState.ExitCode(), text: string(text), dir: dir}
	if err := os.WriteFile(dir+".out", text, 0o644); err != nil {
		return nil, err
	}
	return o, o.read()
}

// read reads the run's folder. Without one there is nothing to read: the command
// stopped before the run.
func (o *outcome) read() error {
	if err := results.ReadJSON(filepath.Join(o.dir, "summary.json"), &o.summary); errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
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

// reason returns the first line of the output that has one of the words and, if that
// is the error, what follows it.
func (o *outcome) reason(words ...string) string {
	const program = "moontide: "
	for line := range strings.Lines(o.text) {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue
			}
			if _, rest, ok := strings.Cut(o.text, line); ok && o.exit == 1 && strings.HasPrefix(line, program) {
				line += rest
			}
			return strings.Join(strings.Fields(strings.TrimPrefix(line, program)), " ")
		}
	}
	return ""
}
