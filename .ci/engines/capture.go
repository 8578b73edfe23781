package main

import (
	"bufio"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"moontide/trace"
	"moontide/trace/format"
)

// officialClients has the official clients for Python send requests, and prints what
// each answer's usage says.
//
//go:embed clients.py
var officialClients string

// clientCall is a request of an official client, as its usage describes it.
type clientCall struct {
	API    string `json:"endpoint"`
	Stream bool   `json:"stream"`
	Input  int    `json:"input"`
	Output int    `json:"output"`
}

// captured has the official clients send requests through moontide capture, and compares
// the rows with the usage that they got.
func captured(s *session) error {
	var calls []clientCall
	seen, err := s.capture("clients", func() (err error) {
		cmd := exec.Command(filepath.Join(s.tools.vllm, "bin", "python"), "-c", officialClients, s.server.url, s.server.opts.model.name)
		cmd.Stderr = os.Stderr
		text, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("official clients: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			var c clientCall
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				return err
			}
			calls = append(calls, c)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.equal("official clients: requests", len(calls), len(seen))
	for i, row := range seen[:min(len(seen), len(calls))] {
		var recorded struct {
			Recorded struct {
				Endpoint string `json:"endpoint"`
				Stream   bool   `json:"stream"`
			} `json:"recorded"`
		}
		if err := json.Unmarshal(row.Extra, &recorded); err != nil {
			return err
		}
		got := clientCall{recorded.Recorded.Endpoint, recorded.Recorded.Stream, row.InputLength, row.OutputLength}
		s.equal(fmt.Sprintf("official clients, request %d: API, streamed, input, output", i+1), calls[i], got)
	}
	return nil
}

// capture puts moontide capture before the server while clients send requests, and
// returns the rows in order of arrival.
func (s *session) capture(name string, clients func() error) (rows []trace.Request, err error) {
	dir, err := s.folder(name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "trace.jsonl")
	cmd := exec.Command(s.tools.moontide, "capture", "--listen", "127.0.0.1:0", "--upstream", s.server.url, "--key", filepath.Join(dir, "key"), "-o", path,
		"--block-size", fmt.Sprint(traceBlock), "--tokenizer", filepath.Join(s.tools.models, s.server.opts.model.name, "tokenizer.json"))
	said, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(said)
	line, err := lines.ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) < 3 {
		return nil, errors.Join(fmt.Errorf("moontide capture says %q", line), err, cmd.Process.Kill(), cmd.Wait())
	}
	direct := s.server.url
	s.server.url = words[2]
	err = clients()
	s.server.url = direct
	cmd.Process.Signal(os.Interrupt)
	for ; err == nil && line != ""; line, _ = lines.ReadString('\n') {
		if strings.Contains(line, "warning") {
			s.law("no warnings", "none", line, false)
		}
	}
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return nil, err
	}
	in, err := format.Open(path, format.Options{})
	if err != nil {
		return nil, err
	}
	defer in.Close()
	for r, err := range in.Requests() {
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return cmp.Compare(a.Timestamp.Value, b.Timestamp.Value) })
	return rows, nil
}
