package main

import (
	"bufio"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The events of a run are the lines of its samples.
func TestReplayEvents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := must(t, dir, "replay", sample(t), "--limit", "3", "--events", "events.jsonl", "--out", "run")
	if !strings.Contains(out, "Verdict: ") {
		t.Errorf("no report:\n%s", out)
	}
	samples, err := os.ReadFile(filepath.Join(dir, "run", "samples.jsonl"))
	if got := readFile(t, filepath.Join(dir, "events.jsonl")); err != nil || got != string(samples) || got == "" {
		t.Errorf("%v; events\n%ssamples\n%s", err, got, samples)
	}
	if out := must(t, dir, "replay", sample(t), "--limit", "3", "--events", "-", "--out", "run2"); out != readFile(t, filepath.Join(dir, "run2", "samples.jsonl")) {
		t.Errorf("standard output:\n%s", out)
	}
	for _, args := range [][]string{{"--events", "-", "--json"}, {"--events", "x", "--junit", "x"}} {
		if r := try(t, dir, "", append([]string{"replay", sample(t), "--out", "run3"}, args...)...); r.status != exitMisused {
			t.Errorf("%v: exit status %d, %s", args, r.status, r.err)
		}
	}
}

// The metrics of a run are served until it ends.
func TestReplayServesMetrics(t *testing.T) {
	t.Parallel()
	cmd := moontide(t.TempDir(), "replay", sample(t), "--metrics-listen", "127.0.0.1:0", "--out", "run")
	talk, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer endChild(cmd)
	address := ""
	for lines := bufio.NewScanner(talk); lines.Scan(); {
		if _, url, ok := strings.Cut(lines.Text(), "metrics for Prometheus: http://"); ok {
			address = strings.TrimSuffix(url, "/metrics")
		}
		if strings.Contains(lines.Text(), "recording in run") { // the run starts
			break
		}
	}
	go io.Copy(io.Discard, talk)
	for {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatalf("the run ended without metrics: %v", err)
		}
		io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		answer, err := io.ReadAll(conn)
		conn.Close()
		if err == nil && strings.Contains(string(answer), "\nmoontide_requests_sent_total{run=\"run\"} ") {
			return
		}
	}
}
