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

// captured has vllm bench serve and the official clients send requests through moontide
// capture, and compares the rows with their counts and the server's.
func captured(s *session) error {
	rows := shared(60, 60)
	path := filepath.Join(s.tools.out, "captured.jsonl")
	if err := writeTrace(path, rows); err != nil {
		return err
	}
	var r summary
	var grew page
	seen, err := s.capture("bench", func() (err error) {
		grew, err = s.benchServe("bench-serve", 3, path, len(rows), &r)
		return err
	})
	if err != nil {
		return err
	}
	sent := 0
	for _, row := range seen {
		sent += row.OutputLength
	}
	s.equal("vllm bench serve: requests, input and output tokens", fmt.Sprint(r.Completed, r.Input, r.Output), sums(seen))
	s.equal("the server's prompt and generated tokens", fmt.Sprint(grew["vllm:prompt_tokens_total"], grew["vllm:generation_tokens_total"]), fmt.Sprint(float64(r.Input), float64(sent)))
	s.equal("cached tokens", grew["vllm:prefix_cache_hits_total"], cachedOf(seen))

	var calls []clientCall
	seen, err = s.capture("clients", func() (err error) {
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

// sums returns the number of rows and their tokens.
func sums(rows []trace.Request) string {
	in, out := 0, 0
	for _, r := range rows {
		in, out = in+r.InputLength, out+r.OutputLength
	}
	return fmt.Sprint(len(rows), in, out)
}

func cachedOf(rows []trace.Request) (sum float64) {
	for _, r := range rows {
		var x struct {
			Recorded struct {
				Cached float64 `json:"cached_tokens"`
			} `json:"recorded"`
		}
		json.Unmarshal(r.Extra, &x)
		sum += x.Recorded.Cached
	}
	return sum
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
