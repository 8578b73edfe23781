package main

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
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

// An https endpoint is trusted only with the CA file; the verdict includes the
// source of the timestamps.
func TestCAFile(t *testing.T) {
	t.Parallel()
	w := newWitness(t, (*httptest.Server).StartTLS)
	dir := t.TempDir()
	write(t, dir, "t.jsonl", rowsOfSessions())
	write(t, dir, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.Certificate().Raw})))
	out := must(t, dir, "replay", "t.jsonl", "--url", w.URL, "--tls", "ca=ca.pem", "--out", "run")
	if !strings.Contains(out, "12 responses timestamped by the client") || len(w.bodies) != 12 {
		t.Errorf("%d requests\n%s", len(w.bodies), out)
	}
	if r := try(t, dir, "", "replay", "t.jsonl", "--url", w.URL, "--out", "no"); r.status != exitFailed || !strings.Contains(r.err, "certificate") {
		t.Errorf("without: exit status %d\n%s", r.status, r.err)
	}
}
