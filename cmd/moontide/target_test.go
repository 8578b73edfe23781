package main

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"moontide/replay"
	"moontide/replay/runfile"
)

// witness is an endpoint that records request bodies and counts connections.
type witness struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	peers  map[string]bool
}

func newWitness(t *testing.T, start func(*httptest.Server)) *witness {
	w := &witness{peers: map[string]bool{}}
	w.Server = httptest.NewUnstartedServer(http.HandlerFunc(w.answer))
	w.Config.ErrorLog = log.New(io.Discard, "", 0)
	start(w.Server)
	t.Cleanup(w.Close)
	return w
}

// take returns the bodies received since the last call.
func (w *witness) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.bodies
	w.bodies = nil
	return taken
}

func (w *witness) answer(out http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		fmt.Fprint(out, `{"data": [{"id": "m"}]}`)
		return
	}
	body, _ := io.ReadAll(r.Body)
	w.mu.Lock()
	if !strings.Contains(string(body), `"max_tokens":1,`) { // the probe
		w.bodies = append(w.bodies, string(body))
		w.peers[r.RemoteAddr] = true
	}
	w.mu.Unlock()
	out.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(out, `data: {"choices": [{"text": " a", "finish_reason": "length"}], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}`+"\n\ndata: [DONE]\n\n")
}

// rowsOfSessions returns 12 rows of 3 sessions, far enough apart for one
// connection to serve them all.
func rowsOfSessions() string {
	var text strings.Builder
	for i := range 12 {
		fmt.Fprintf(&text, `{"timestamp": %d, "input_length": 5, "output_length": 2, "session_id": "%d", "text_input": "s%d."}`+"\n", 5*i, i%3, i%3)
	}
	return text.String()
}

func TestSeveralURLs(t *testing.T) {
	t.Parallel()
	for _, balance := range []string{"round-robin", "session"} {
		a, b := newWitness(t, (*httptest.Server).Start), newWitness(t, (*httptest.Server).Start)
		dir := t.TempDir()
		write(t, dir, "t.jsonl", rowsOfSessions())
		must(t, dir, "replay", "t.jsonl", "--url", a.URL, "--url", b.URL, "--balance", balance, "--out", "run",
			"--extra-body", `{"temperature": 0, "stop": ["x, y"]}`)
		if n := len(a.bodies) + len(b.bodies); n != 12 || balance == "round-robin" && len(a.bodies) != 6 {
			t.Errorf("%s: %d and %d requests", balance, len(a.bodies), len(b.bodies))
		}
		for _, body := range append(a.bodies, b.bodies...) {
			if !strings.Contains(body, `"stop":["x, y"],"temperature":0}`) {
				t.Errorf("extra body is not in %s", body)
			}
		}
		for s := range 3 {
			text := fmt.Sprintf(`"s%d."`, s)
			n := strings.Count(strings.Join(a.bodies, ""), text)
			if balance == "session" && n != 0 && n != 4 || balance == "round-robin" && n != 2 {
				t.Errorf("%s: %d of 4 turns of a session went to the first", balance, n)
			}
		}
	}
}

// An https endpoint is trusted only with the CA file; the verdict includes the
// source of the timestamps.
func TestCAFile(t *testing.T) {
	t.Parallel()
	w := newWitness(t, (*httptest.Server).StartTLS)
	dir := t.TempDir()
	write(t, dir, "t.jsonl", rowsOfSessions())
	write(t, dir, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.Certificate().Raw})))
	out := must(t, dir, "replay", "t.jsonl", "--url", w.URL, "--ca-file", "ca.pem", "--out", "run")
	if !strings.Contains(out, "12 responses timestamped by the client") || len(w.bodies) != 12 {
		t.Errorf("%d requests\n%s", len(w.bodies), out)
	}
	if r := try(t, dir, "", "replay", "t.jsonl", "--url", w.URL, "--out", "no"); r.status != exitFailed || !strings.Contains(r.err, "certificate") {
		t.Errorf("without: exit status %d\n%s", r.status, r.err)
	}
}

// The client's read delay is stored in the run's folder for the report.
func TestReadDelayIsKept(t *testing.T) {
	t.Parallel()
	w := newWitness(t, (*httptest.Server).Start)
	dir := t.TempDir()
	write(t, dir, "t.jsonl", rowsOfSessions())
	out := must(t, dir, "replay", "t.jsonl", "--url", w.URL, "--out", "run")
	recorded, err := runfile.Open(filepath.Join(dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	recorded.Close()
	stamped := uint64(0) // by the kernel, which may start shortly after the request
	for _, rec := range recordsOf(t, filepath.Join(dir, "run")) {
		if rec.Stamps == replay.KernelStamps {
			stamped++
		}
	}
	d := recorded.Run.ReadDelay
	if d.Reads < stamped || (d.Reads > 0) != (stamped > 0) || d.MedianMS > d.P99MS || d.P99MS > d.MaxMS {
		t.Errorf("read delay %+v, stamped by the kernel: %d", d, stamped)
	}
	if again := must(t, dir, "report", "run"); !strings.HasPrefix(out, again) || strings.Contains(again, "read delay p99 ") != (stamped > 0) {
		t.Errorf("report says\n%s", again)
	}
}

func TestTooFewOpenFiles(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("this system has no limit on open files")
	}
	dir := t.TempDir()
	write(t, dir, "t.jsonl", rowsOfSessions())
	cmd := exec.Command("sh", "-c", `ulimit -n 150 && exec "$0" replay t.jsonl --out run --max-concurrency 12`, os.Args[0])
	cmd.Dir, cmd.Env = dir, append(os.Environ(), asMoontide+"=1")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(string(out), "which allows 11 requests in flight") {
		t.Errorf("%v\n%s", err, out)
	}
}
