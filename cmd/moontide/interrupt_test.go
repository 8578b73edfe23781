package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
)

// slowEndpoint streams one token of each answer immediately and the rest when
// it is released. It signals each request it receives.
type slowEndpoint struct {
	*httptest.Server
	got     chan struct{}
	release chan struct{}
}

func newSlowEndpoint(t *testing.T) *slowEndpoint {
	s := &slowEndpoint{got: make(chan struct{}, 100), release: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	return s
}

func (s *slowEndpoint) answer(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		fmt.Fprint(w, `{"object": "list", "data": [{"id": "slow"}]}`)
		return
	}
	var body bytes.Buffer
	body.ReadFrom(r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, `data: {"choices": [{"text": " a"}]}`+"\n\n")
	w.(http.Flusher).Flush()
	if probe := strings.Contains(body.String(), `"max_tokens":1,`); !probe {
		s.got <- struct{}{}
		select {
		case <-s.release:
		case <-r.Context().Done():
			return
		}
	}
	fmt.Fprint(w, `data: {"choices": [{"text": " b", "finish_reason": "length"}]}`+"\n\ndata: [DONE]\n\n")
}

// start starts a replay of rows 100 ms apart and returns when the endpoint has
// received three of them.
func (s *slowEndpoint) start(t *testing.T, dir string) (cmd *exec.Cmd, out *bytes.Buffer, talk *talk) {
	t.Helper()
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, `{"timestamp": %d, "input_length": 20, "output_length": 2}`+"\n", 100*i)
	}
	write(t, dir, "t.jsonl", text.String())
	cmd = moontide(dir, "replay", "t.jsonl", "--url", s.URL, "--out", "run")
	out = &bytes.Buffer{}
	cmd.Stdout = out
	talk = begin(t, cmd)
	for range 3 {
		<-s.got
	}
	return cmd, out, talk
}

// talk is the output of a command, line by line.
type talk struct {
	lines *bufio.Scanner
	said  strings.Builder
}

// begin starts a command. Its talk must be read to the end before waiting for
// it.
func begin(t *testing.T, cmd *exec.Cmd) *talk {
	t.Helper()
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endChild(cmd) })
	return &talk{lines: bufio.NewScanner(pipe)}
}

// interrupted is printed when sending stops.
const interrupted = "interrupt again to end at once"

// await returns when the command has printed a text.
func (k *talk) await(t *testing.T, text string) {
	t.Helper()
	for k.lines.Scan() {
		fmt.Fprintln(&k.said, k.lines.Text())
		if strings.Contains(k.lines.Text(), text) {
			return
		}
	}
	t.Fatalf("no %q in\n%s", text, &k.said)
}

// end waits for a command and returns all its output.
func (k *talk) end(cmd *exec.Cmd) string {
	for k.lines.Scan() {
		fmt.Fprintln(&k.said, k.lines.Text())
	}
	cmd.Wait() // its exit status tells
	return k.said.String()
}

func interrupt(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
}

// Once the requests in flight are released, an interrupted run ends normally.
func TestInterruptDrains(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			if signal.Ignored(sig) {
				t.Skip("ignored by the caller, as under nohup")
			}
			testDrain(t, sig)
		})
	}
}

func testDrain(t *testing.T, sig os.Signal) {
	t.Helper()
	s, dir := newSlowEndpoint(t), t.TempDir()
	cmd, out, talk := s.start(t, dir)
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	talk.await(t, interrupted)
	close(s.release)
	said := talk.end(cmd)
	records := recordsOf(t, filepath.Join(dir, "run"))
	for row, rec := range records {
		if rec.Class != replay.OK || rec.Chunks != 2 {
			t.Errorf("row %d was not finished: %v %s", row, rec.Class, rec.Error)
		}
	}
	n := len(records)
	if n < 3 || n == 500 {
		t.Fatalf("%d records\n%s", n, said)
	}
	if code := cmd.ProcessState.ExitCode(); code != exitFailed {
		t.Errorf("exit status %d: a run that was stopped is not done", code)
	}
	if want := "to continue: moontide replay t.jsonl --resume run"; !strings.Contains(said, want) {
		t.Errorf("no %q in\n%s", want, said)
	}
	for _, want := range []string{
		fmt.Sprintf("Successful requests:                     %d\n", n),
		fmt.Sprintf("Requests not sent:                       %d\n", 500-n),
		fmt.Sprintf("The run was stopped early: %d of 500 rows were not sent.\n", 500-n),
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if again := must(t, dir, "report", "run"); !strings.HasPrefix(out.String(), again) {
		t.Errorf("report prints\n%s", again)
	}
}

func TestSecondInterruptEndsAtOnce(t *testing.T) {
	t.Parallel()
	s, dir := newSlowEndpoint(t), t.TempDir()
	cmd, out, talk := s.start(t, dir)
	interrupt(t, cmd)
	talk.await(t, interrupted)
	interrupt(t, cmd)
	said := talk.end(cmd) // nothing releases the answers
	records := recordsOf(t, filepath.Join(dir, "run"))
	if len(records) < 3 {
		t.Fatalf("%d records\n%s", len(records), said)
	}
	for row, rec := range records {
		// The last requests may not have received their first token yet.
		if rec.Class != replay.Canceled || rec.Chunks > 1 {
			t.Errorf("row %d: %v, %d chunks", row, rec.Class, rec.Chunks)
		}
	}
	if cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(out.String(), fmt.Sprintf("Failed requests:                         %d\n", len(records))) {
		t.Errorf("exit status %d\n%s%s", cmd.ProcessState.ExitCode(), out, said)
	}
	if again := must(t, dir, "report", "run"); !strings.HasPrefix(out.String(), again) {
		t.Errorf("report prints\n%s", again)
	}
}

// A killed run keeps every request that had ended, and report states that the
// run did not end.
func TestKilledRunLosesNothing(t *testing.T) {
	t.Parallel()
	s, dir := newSlowEndpoint(t), t.TempDir()
	cmd, _, _ := s.start(t, dir)
	for range 3 {
		s.release <- struct{}{}
	}
	path := filepath.Join(dir, "run", runfile.RequestsFile)
	for { // the record is written shortly after the end of an answer
		text, _ := os.ReadFile(path)
		if bytes.Count(text, []byte("\n")) == 3 {
			break
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the records never came")
		case <-time.After(time.Millisecond):
		}
	}
	endChild(cmd)
	for row, rec := range recordsOf(t, filepath.Join(dir, "run")) {
		if rec.Class != replay.OK {
			t.Errorf("row %d: %v", row, rec.Class)
		}
	}
	out := must(t, dir, "report", "run")
	if !strings.Contains(out, "Successful requests:                     3\n") || !strings.Contains(out, "The run did not end") {
		t.Errorf("report prints\n%s", out)
	}
}
