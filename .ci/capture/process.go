package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// process is a moontide that listens.
type process struct {
	url  string
	cmd  *exec.Cmd
	said chan string
}

var address = regexp.MustCompile(`http://[0-9.:]+`)

// start starts a verb that says where it listens.
func (t *tools) start(args ...string) (*process, error) {
	p := &process{cmd: exec.Command(t.moontide, args...), said: make(chan string, 1)}
	talk, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(talk)
	line, err := lines.ReadString('\n')
	if p.url = address.FindString(line); err != nil || p.url == "" {
		p.cmd.Process.Kill()
		return nil, errors.Join(fmt.Errorf("moontide %s says %q", strings.Join(args, " "), line), err, p.cmd.Wait())
	}
	go func() {
		rest, _ := io.ReadAll(lines)
		p.said <- string(rest)
	}()
	return p, nil
}

// serve starts the simulated endpoint.
func (t *tools) serve(flags ...string) (*process, error) {
	return t.start(append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)
}

// capture starts a capture of a server into a new file.
func (t *tools) capture(upstream *process) (p *process, trace string, err error) {
	dir, err := os.MkdirTemp(t.work, "capture")
	if err != nil {
		return nil, "", err
	}
	trace = filepath.Join(dir, "trace.jsonl.zst")
	p, err = t.start("capture", "--listen", "127.0.0.1:0", "--upstream", upstream.url, "--key", filepath.Join(t.work, "key"), "-o", trace)
	return p, trace, err
}

// between starts a server with flags, and a capture before it into a new file.
func (t *tools) between(flags ...string) (server, proxy *process, trace string, err error) {
	if server, err = t.serve(flags...); err != nil {
		return nil, nil, "", err
	}
	if proxy, trace, err = t.capture(server); err != nil {
		server.end()
	}
	return server, proxy, trace, err
}

// end interrupts the process and returns what it said.
func (p *process) end() (string, error) {
	p.cmd.Process.Signal(os.Interrupt)
	said := <-p.said
	return said, p.cmd.Wait()
}

// proc returns a number that /proc has of a process.
func (p *process) proc(file, pattern string) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file))
	if found := regexp.MustCompile(pattern).FindSubmatch(text); found != nil {
		n, _ := strconv.ParseFloat(string(found[1]), 64)
		return n
	}
	return -1
}

// cpu returns the CPU time of the process in seconds.
func (p *process) cpu() float64 {
	const fields = `\) (?:\S+ ){11}`
	return (p.proc("stat", fields+`(\d+)`) + p.proc("stat", fields+`\d+ (\d+)`)) / 100
}

// run runs moontide to its end and returns its standard output.
func (t *tools) run(args ...string) (string, error) {
	cmd := exec.Command(t.moontide, args...)
	var talk strings.Builder
	cmd.Stderr = &talk
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 { // measured, but INVALID
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("moontide %s: %w: %s", strings.Join(args, " "), err, talk.String())
	}
	return string(out), err
}
