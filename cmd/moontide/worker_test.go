package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"
)

// workerMode is the value of asMoontide that turns the test binary into a worker.
const workerMode = "worker"

// commandTimeout ends a command that does not end, such as a serve that should be refused.
const commandTimeout = 2 * time.Minute

// job is a command for a worker.
type job struct {
	Dir  string
	Args []string
}

// outcome is a result as a worker sends it. Output may be binary.
type outcome struct {
	Out, Err []byte
	Status   int
}

// work executes jobs until its input ends. Its output is for outcomes only, so
// that a command that writes to os.Stdout directly fails.
func work(in io.Reader, out io.Writer) {
	cores := runtime.GOMAXPROCS(0)
	results := json.NewEncoder(out)
	for jobs := json.NewDecoder(in); ; {
		var j job
		if jobs.Decode(&j) != nil {
			return
		}
		var o outcome
		if err := os.Chdir(j.Dir); err != nil {
			o = outcome{Err: []byte(err.Error()), Status: -1}
		} else {
			var data, messages bytes.Buffer
			o.Status = execute(j.Args, streams{strings.NewReader(""), &data, &messages}, make(chan os.Signal))
			o.Out, o.Err = data.Bytes(), messages.Bytes()
		}
		os.Chdir(os.TempDir()) // lets the test remove its folder on any system
		runtime.GOMAXPROCS(cores)
		debug.SetGCPercent(100)
		if results.Encode(o) != nil {
			return
		}
	}
}

// worker is a process that executes one command after another.
type worker struct {
	cmd     *exec.Cmd
	input   io.Closer // ends the process
	jobs    *json.Encoder
	results *json.Decoder
}

// workerPool holds the idle workers.
type workerPool struct {
	mu   sync.Mutex
	idle []*worker
}

var workers workerPool

func (p *workerPool) run(t *testing.T, j job) result {
	t.Helper()
	j.Dir = absolute(t, j.Dir)
	w := p.take(t)
	bound := time.AfterFunc(commandTimeout, func() { w.cmd.Process.Kill() })
	defer bound.Stop()
	var o outcome
	if err := w.jobs.Encode(j); err != nil {
		t.Fatal(err)
	}
	if err := w.results.Decode(&o); err != nil || o.Status < 0 {
		t.Fatalf("moontide %s: it panicked, exited, wrote to os.Stdout, or ran for %v: %v %s", strings.Join(j.Args, " "), commandTimeout, err, o.Err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, w)
	return result{out: string(o.Out), err: string(o.Err), status: o.Status}
}

func (p *workerPool) take(t *testing.T) *worker {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		w := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return w
	}
	cmd := moontide("")
	cmd.Env = append(cmd.Env, asMoontide+"="+workerMode)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &worker{cmd, in, json.NewEncoder(in), json.NewDecoder(out)}
}

func (p *workerPool) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.idle {
		w.input.Close()
		w.cmd.Wait()
	}
}
