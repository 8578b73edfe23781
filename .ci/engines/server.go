package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options are how a server is started.
type options struct {
	name     string
	model    model
	blocks   int    // of the KV cache; 0 for all that fit
	interval int    // tokens per chunk; 0 for one
	slots    int    // llama.cpp's number of sequences at a time
	key      string // the API key that it requires
	context  int    // of vLLM; 0 for maxModelLen
}

// engine is a kind of server.
type engine struct {
	name, title string
	readyIn     time.Duration
	blockOf     int // block size of its prefix cache
	version     func(t *tools) string
	prepare     func(t *tools, m model) error // makes what the server loads
	command     func(t *tools, port string, o options) *exec.Cmd
	// cached returns the cached tokens of requests sent one after the other.
	cached func(o options, prompts []prompt) []int
}

// server is a running server.
type server struct {
	url    string
	port   string
	cmd    *exec.Cmd
	ended  chan struct{}
	output string // path of its log
	opts   options
}

// start starts a server on loopback and waits until it answers.
func (e *engine) start(t *tools, o options) (*server, error) {
	if err := e.prepare(t, o.model); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &server{url: "http://127.0.0.1:" + port, port: port, opts: o}
	s.output = filepath.Join(t.out, e.name+"-"+o.name+".log")
	return s, s.launch(e, t)
}

// launch starts the process, again after a kill.
func (s *server) launch(e *engine, t *tools) error {
	out, err := os.Create(s.output)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd, ended := e.command(t, s.port, s.opts), make(chan struct{})
	s.cmd, s.ended = cmd, ended
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	// Other work on the machine disturbs both clients of a comparison. Linux applies
	// priorities by session; without root it stays as it is.
	os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", cmd.Process.Pid), []byte("-10"), 0)
	go func() {
		cmd.Wait()
		close(ended)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), e.readyIn)
	defer cancel()
	for {
		if status, _, err := s.get(ctx, "/health"); err == nil && status == http.StatusOK {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("starting %s: it ended; see %s", e.name, s.output)
		case <-ctx.Done():
			s.kill()
			return fmt.Errorf("starting %s: no answer within %v; see %s", e.name, e.readyIn, s.output)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// preferred returns a command of a client, before other work on the machine if the
// system allows it.
func preferred(name string, args ...string) *exec.Cmd {
	if chrt, err := exec.LookPath("chrt"); err == nil && exec.Command(chrt, "--rr", "1", "true").Run() == nil {
		name, args = chrt, append([]string{"--rr", "1", name}, args...)
	}
	return exec.Command(name, args...)
}

func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return strconv.Itoa(ln.Addr().(*net.TCPAddr).Port), ln.Close()
}

// kill ends the server and its workers at once, as a crash does.
func (s *server) kill() {
	syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	<-s.ended
}

// stop ends the server in order, or else at once.
func (s *server) stop() {
	syscall.Kill(s.cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(20 * time.Second):
	}
	s.kill()
}

func (s *server) get(ctx context.Context, path string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return 0, nil, err
	}
	if s.opts.key != "" {
		req.Header.Set("Authorization", "Bearer "+s.opts.key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, text, err
}

// page is the server's metrics by name, added up over labels.
type page map[string]float64

func (s *server) metrics() (page, error) {
	_, text, err := s.get(context.Background(), "/metrics")
	if err != nil {
		return nil, err
	}
	p := page{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if strings.HasPrefix(line, "#") || len(words) == 0 {
			continue
		}
		name, _, _ := strings.Cut(words[0], "{")
		value, err := strconv.ParseFloat(words[len(words)-1], 64)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", line, err)
		}
		p[name] += value
	}
	return p, nil
}

// since returns what was added since an earlier page.
func (p page) since(before page) page {
	d := page{}
	for name, value := range p {
		d[name] = value - before[name]
	}
	return d
}
