package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"moontide/.ci/results"
)

// clientCall is a request of an official client, as its usage describes it.
type clientCall struct {
	API    string `json:"endpoint"`
	Stream bool   `json:"stream"`
	Input  int    `json:"input"`
	Output int    `json:"output"`
}

// captured has the official clients for Python send requests one after the other through
// moontide capture, and compares the rows with the usage that they got.
func captured(s *session) error {
	dir, err := s.folder("clients")
	if err := errors.Join(err, os.Mkdir(dir, 0o755)); err != nil {
		return err
	}
	path := filepath.Join(dir, "trace.jsonl")
	capture := exec.Command(s.tools.moontide, "capture", "--listen", "127.0.0.1:0", "--upstream", s.server.url, "--key", filepath.Join(dir, "key"), "-o", path,
		"--block-size", fmt.Sprint(traceBlock), "--tokenizer", s.flags("TOKENIZER")[0])
	pipe, err := capture.StderrPipe()
	if err != nil {
		return err
	}
	if err := capture.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(pipe)
	lines.Scan() // with the proxy's address as the third word
	words := append(strings.Fields(lines.Text()), "", "", "")
	clients := exec.Command(filepath.Join(s.tools.vllm, "bin", "python"), here.File("clients.py"), words[2], s.server.opts.model.name)
	clients.Stderr = os.Stderr
	text, err := clients.Output()
	capture.Process.Signal(os.Interrupt)
	warnings := 0
	for lines.Scan() {
		if strings.Contains(lines.Text(), "warning") {
			warnings++
		}
	}
	if err := errors.Join(err, capture.Wait()); err != nil {
		return err
	}
	s.equal("warnings", 0, warnings)
	rows, err := results.ReadTrace(path)
	if err != nil {
		return err
	}
	slices.SortStableFunc(rows, results.ByTime)
	right, said := 0, json.NewDecoder(bytes.NewReader(text))
	for i := 0; said.More(); i++ {
		var call clientCall
		var row struct {
			Recorded clientCall `json:"recorded"`
		}
		if err := said.Decode(&call); err != nil {
			return err
		}
		if i < len(rows) && json.Unmarshal(rows[i].Extra, &row) == nil {
			row.Recorded.Input, row.Recorded.Output = rows[i].InputLength, rows[i].OutputLength
		}
		if row.Recorded == call {
			right++
		} else {
			s.equal(fmt.Sprint("official clients, request ", i+1), call, row.Recorded)
		}
	}
	s.equal("requests of official clients with their API, streaming, input and output tokens", "14 of 14", fmt.Sprint(right, " of ", len(rows)))
	return nil
}
