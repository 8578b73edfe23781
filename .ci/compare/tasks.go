package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"moontide/.ci/results"
	"moontide/replay/evidence"
	"moontide/replay/sim/server"
)

// task is work that a tool does: a command, or a client that sends a load.
type task struct {
	name, tool, command string
	client              *client
	load                load
}

// The tasks of each part of the page.
const (
	analyzing    = "analyze 100,000 rows"
	synthesizing = "synthesize 100,000 rows"
)

// tasks returns all tasks, those of one name side by side.
func tasks() []task {
	all := []task{
		{name: analyzing, tool: moontideName, command: "MOONTIDE analyze OUT/large.jsonl"},
		{name: analyzing, tool: aiperfName, command: "AIPERF/aiperf analyze-trace OUT/large.jsonl"},
		{name: synthesizing, tool: "moontide --method sessions", command: "MOONTIDE synth --from OUT/small.jsonl -n 100000 -o DIR/out.jsonl"},
		{name: synthesizing, tool: "moontide --method tree", command: "MOONTIDE synth --from OUT/small.jsonl --method tree --prefix-len-multiplier 2 -n 100000 -o DIR/out.jsonl"},
		{name: synthesizing, tool: "moontide --spec agent", command: "MOONTIDE synth --spec agent -n 100000 -o DIR/out.jsonl"},
		{name: synthesizing, tool: "AIPerf Synthesizer", command: "AIPERF/python " + here.File("synthesize.py") + " OUT/tree.jsonl DIR/out.jsonl 2"},
		{name: synthesizing, tool: "AIPerf synthesize agentic-code", command: "AIPERF/aiperf synthesize --target agentic-code --num-sessions 5000 --output DIR"},
	}
	for _, l := range loads {
		for _, c := range clients {
			all = append(all, task{l.Name, c.name, c.command(l), &c, l})
		}
	}
	return all
}

// makeTraces makes the traces of the tasks.
func (t *tools) makeTraces() error {
	for _, command := range []string{
		"synth --from traces/conversation.model.gz -n 12000 --seed 1 -o OUT/small.jsonl",
		"synth --from traces/conversation.model.gz -n 100000 --seed 1 -o OUT/large.jsonl",
		"synth --from OUT/small.jsonl --method tree -n 100000 --seed 1 -o OUT/tree.jsonl",
	} {
		if text, err := exec.Command(t.moontide, t.words(command)...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, text)
		}
	}
	return nil
}

// words splits a command, with the installed tools in place of their names.
func (t *tools) words(command string, more ...string) []string {
	return strings.Fields(strings.NewReplacer(append(more, "MOONTIDE", t.moontide, "AIPERF", t.aiperf+"/bin", "VLLM", t.vllm+"/bin",
		"OUT", t.out, "TOKENIZER", t.out+"/tokenizer")...).Replace(command))
}

// timeLimit ends a run that hangs.
const timeLimit = 10 * time.Minute

// truth is what the server wrote.
type truth = server.Summary

// do does a task in a folder.
func (t *tools) do(x task, dir string) run {
	r := run{Task: x.name, Tool: x.tool, Command: strings.NewReplacer("MOONTIDE", "moontide", "AIPERF/", "", "VLLM/", "").Replace(x.command)}
	if x.client == nil {
		r.Cost = measure(command{args: t.words(x.command, "DIR", dir), log: filepath.Join(dir, "output")}, func() time.Duration { return 0 })
		for _, pattern := range []string{"*.jsonl", "*/dataset.jsonl"} {
			paths, _ := filepath.Glob(filepath.Join(dir, pattern))
			for _, path := range paths { // not read here: a child's peak memory is at least its parent's
				lines, _, _ := strings.Cut(results.FirstLine("wc", "-l", path), " ")
				n, _ := strconv.Atoi(lines)
				r.Rows += n
			}
		}
		return r
	}
	e, err := t.start(x.load)
	if err != nil {
		r.Cost.Error = err.Error()
		return r
	}
	r.Cost = measure(command{args: t.words(x.command, "DIR", dir, "URL", e.url), env: x.client.env, log: filepath.Join(dir, "output")},
		func() time.Duration { return evidence.ProcessCPU(e.pid) })
	output, _ := os.ReadFile(filepath.Join(dir, "output"))
	var read error
	r.Server, err = e.end()
	r.Client, read = x.client.read(dir, string(output))
	if err := errors.Join(err, read); err != nil {
		r.Cost.Error = strings.TrimPrefix(r.Cost.Error+"; "+err.Error(), "; ")
	}
	return r
}

// endpoint is a simulated endpoint in a process of its own.
type endpoint struct {
	url string
	pid int
	end func() (*truth, error) // stops it and returns what it wrote
}

// start starts an endpoint for a load.
func (t *tools) start(l load) (e endpoint, err error) {
	args := fmt.Sprintf("-n %s MOONTIDE serve --listen 127.0.0.1:0 --json --until-input-ends --prefill-per-token 0s --decode-per-sequence 0s"+
		" --decode-per-context-token 0s --step-base 0s --phased-tpot %dms --max-num-seqs 1000000 --max-num-batched-tokens 100000000"+
		" --num-gpu-blocks 100000000 --max-model-len 1000000", serverNice, l.TPOT)
	if l.TTFT > 0 {
		args += fmt.Sprintf(" --fault delay:1:%dms", l.TTFT)
	}
	cmd := exec.Command("nice", t.words(args)...)
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
