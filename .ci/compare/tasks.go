package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"moontide/analyze/report/doc"
	"moontide/replay/evidence"
	"moontide/replay/sim/server"
)

// task is work that several tools do.
type task struct {
	name  string
	tools []measured
}

type measured struct {
	tool string
	run  func(dir string) run
}

// truth is what the server wrote.
type truth = server.Summary

// timeLimit ends a run that hangs.
const timeLimit = 10 * time.Minute

// loads are the streaming tasks. The endpoint sends the first token 100 ms after
// a request and then one every TPOT, each stream at its own phase.
var loads = []load{
	{Name: "start", Requests: 1, Concurrency: 1, OSL: 2, TPOT: 1},
	{Name: "100 streams", Requests: 500, Rate: 50, Concurrency: 105, OSL: 100, TPOT: 20, TTFT: 100},
	{Name: "1,000 streams", Requests: 2000, Rate: 200, Concurrency: 1020, OSL: 250, TPOT: 20, TTFT: 100},
	{Name: "10,800 streams", Requests: 21_600, Rate: 1080, Concurrency: 10_870, OSL: 62, TPOT: 163, TTFT: 100},
	{Name: "one-token answers", Requests: 5000, Concurrency: 64, OSL: 1, TPOT: 1},
}

func tasks(t *tools) ([]task, error) {
	const small, large = 12_000, 100_000
	traces := map[int]string{}
	trees := map[int]string{} // made by the tree method
	for _, n := range []int{small, 10_000, large} {
		rows := fmt.Sprint(n)
		traces[n], trees[n] = filepath.Join(t.out, "trace-"+rows+".jsonl"), filepath.Join(t.out, "tree-"+rows+".jsonl")
		for _, args := range [][]string{
			{"--from", "traces/conversation.model.gz", "-n", rows, "--seed", "1", "-o", traces[n]},
			{"--from", traces[small], "--method", "tree", "-n", rows, "--seed", "1", "-o", trees[n]},
		} {
			if out, err := exec.Command(t.moontide, append([]string{"synth"}, args...)...).CombinedOutput(); err != nil {
				return nil, fmt.Errorf("%w: %s", err, out)
			}
		}
	}
	var all []task
	for _, n := range []int{small, large} {
		all = append(all, task{"analyze " + doc.Int(n) + " rows", []measured{
			{moontideName, analysis(t.moontide, "analyze", traces[n])},
			{aiperfName, analysis(filepath.Join(t.aiperf, "bin", "aiperf"), "analyze-trace", traces[n])},
		}})
	}
	for _, n := range []int{10_000, large} {
		rows := fmt.Sprint(n)
		all = append(all, task{"synthesize " + doc.Int(n) + " rows", []measured{
			{"moontide --method sessions", synthesis(t.moontide, "synth", "--from", traces[small], "-n", rows, "-o", "DIR/out.jsonl")},
			{"moontide --method tree", synthesis(t.moontide, "synth", "--from", traces[small], "--method", "tree", "--prefix-len-multiplier", "2", "-n", rows, "-o", "DIR/out.jsonl")},
			{"AIPerf Synthesizer", synthesis(filepath.Join(t.aiperf, "bin", "python"), here.File("synthesize.py"), trees[n], "DIR/out.jsonl", "2")},
			{"moontide --spec agent", synthesis(t.moontide, "synth", "--spec", "agent", "-n", rows, "-o", "DIR/out.jsonl")},
			{"AIPerf synthesize agentic-code", synthesis(filepath.Join(t.aiperf, "bin", "aiperf"), "synthesize", "--target", "agentic-code", "--num-sessions", fmt.Sprint(n/20), "--output", "DIR")},
		}})
	}
	for _, l := range loads {
		x := task{name: l.Name}
		for _, c := range clients {
			x.tools = append(x.tools, measured{c.name, func(dir string) run { return drive(t, c, l, dir) }})
		}
		all = append(all, x)
	}
	return all, nil
}

func nothing() time.Duration { return 0 }

// program measures a command whose words DIR stand for its folder.
func program(dir string, args []string) (r run, output string) {
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "DIR", dir)
	}
	r.Command = strings.Join(args, " ")
	var err error
	r.Cost, err = measure(command{args: args, log: filepath.Join(dir, "output"), limit: timeLimit}, nothing)
	text, _ := os.ReadFile(filepath.Join(dir, "output.out"))
	if r.Error = failure(r.Cost, err); r.Error != "" {
		r.Error += ": " + lastLine(string(text))
	}
	return r, string(text)
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

func failure(c Cost, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case c.Limit:
		return fmt.Sprintf("not done after %v", timeLimit)
	case c.Exit != 0:
		return fmt.Sprintf("exit status %d", c.Exit)
	}
	return ""
}

func analysis(args ...string) func(string) run {
	return func(dir string) run {
		r, _ := program(dir, slices.Clone(args))
		return r
	}
}

func synthesis(args ...string) func(string) run {
	return func(dir string) run {
		r, _ := program(dir, slices.Clone(args))
		files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
		nested, _ := filepath.Glob(filepath.Join(dir, "*", "dataset.jsonl"))
		for _, path := range append(files, nested...) {
			r.Rows += lines(path)
		}
		return r
	}
}

// lines counts the lines of a file in little memory: the peak memory that Linux
// reports for a child is at least that of its parent.
func lines(path string) (n int) {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	for {
		k, err := f.Read(buf)
		n += bytes.Count(buf[:k], []byte("\n"))
		if err != nil {
			return n
		}
	}
}

// endpoint is a simulated endpoint in a process of its own.
type endpoint struct {
	url string
	pid int
	end func() (*truth, error) // stops it and returns what it wrote
}

func start(cmd *exec.Cmd) (e endpoint, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return e, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return e, err
	}
	if err := cmd.Start(); err != nil {
		return e, err
	}
	prefer(cmd.Process.Pid, serverNice)
	lines := json.NewDecoder(out)
	var first struct{ URL string }
	err = lines.Decode(&first)
	e.url, e.pid = first.URL, cmd.Process.Pid
	e.end = func() (*truth, error) {
		in.Close()
		var wrote truth
		return &wrote, errors.Join(lines.Decode(&wrote), cmd.Wait())
	}
	return e, err
}

// drive has a client send a load to a new endpoint.
func drive(t *tools, c client, l load, dir string) (r run) {
	serve := []string{"-n", serverNice, t.moontide, "serve", "--listen", "127.0.0.1:0", "--json", "--until-input-ends",
		"--prefill-per-token", "0s", "--decode-per-sequence", "0s", "--decode-per-context-token", "0s", "--step-base", "0s", "--phased-tpot", fmt.Sprintf("%dms", l.TPOT),
		"--max-num-seqs", "1000000", "--max-num-batched-tokens", "100000000", "--num-gpu-blocks", "100000000", "--max-model-len", "1000000"}
	if l.TTFT > 0 {
		serve = append(serve, "--fault", fmt.Sprintf("delay:1:%dms", l.TTFT))
	}
	endpoint, err := start(exec.Command("nice", serve...))
	if err != nil {
		return run{Error: err.Error()}
	}
	args := c.args(*t, endpoint.url, dir, l)
	r.Command = strings.ReplaceAll(strings.Join(append(slices.Clone(c.env), args...), " "), endpoint.url, "URL")
	r.Cost, err = measure(command{args: args, env: c.env, log: filepath.Join(dir, "output"), limit: timeLimit},
		func() time.Duration { return evidence.ProcessCPU(endpoint.pid) })
	r.Error = failure(r.Cost, err)
	if r.Server, err = endpoint.end(); err != nil {
		r.Error += "; endpoint: " + err.Error()
	}
	output, _ := os.ReadFile(filepath.Join(dir, "output.out"))
	f, err := c.read(dir, string(output), l)
	if err != nil {
		r.Error += "; no result: " + strings.ReplaceAll(err.Error(), dir, "OUT")
		return r
	}
	r.Client = &f
	return r
}
