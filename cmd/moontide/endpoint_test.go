package main

import (
	"bufio"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
)

// serveFast runs moontide serve in a separate process, with the fastest engine
// and room for every prompt, and returns its URL.
func serveFast(t *testing.T, flags ...string) string {
	t.Helper()
	cmd := moontide(t.TempDir(), append([]string{"serve", "--listen", "127.0.0.1:0",
		"--step-base", "0", "--prefill-per-token", "0", "--decode-per-sequence", "0", "--decode-per-context-token", "0", "--num-gpu-blocks", "8000000"}, flags...)...)
	line, talk := startChild(t, cmd)
	_, rest, _ := strings.Cut(line, " on ")
	url, _, ok := strings.Cut(rest, ",")
	if !ok {
		t.Fatalf("serve says %q", line)
	}
	go io.Copy(io.Discard, talk)
	return url
}

// Every --fault of an endpoint happens.
func TestSeveralFaults(t *testing.T) {
	t.Parallel()
	url, got := serveFast(t, "--fault", "429:0.3", "--fault", "500:0.3"), map[int]bool{}
	for range 40 {
		answer, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"prompt": "a", "max_tokens": 1}`))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		got[answer.StatusCode] = true
	}
	if len(got) != 3 || !got[200] || !got[429] || !got[500] {
		t.Errorf("status codes are %v", got)
	}
}

// startChild starts a command, which is ended with the test, and returns the first line
// that it says and the rest.
func startChild(t *testing.T, cmd *exec.Cmd) (line string, rest io.Reader) {
	t.Helper()
	talk, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endChild(cmd) })
	lines := bufio.NewReader(talk)
	if line, err = lines.ReadString('\n'); err != nil {
		t.Fatalf("%v says %q: %v", cmd.Args[1:], line, err)
	}
	return line, lines
}

func endChild(cmd *exec.Cmd) {
	cmd.Process.Kill()
	cmd.Wait()
}
