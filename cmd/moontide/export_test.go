package main

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
)

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
