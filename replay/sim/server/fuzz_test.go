package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"moontide/replay/sim/engine"
)

// exchange sends bytes on a new connection and passes the answer to read. It returns
// when the server has finished with the connection.
func exchange(t *testing.T, s *Server, sent string, read func(io.Reader)) {
	t.Helper()
	client, server := net.Pipe()
	client.SetDeadline(time.Now().Add(time.Minute)) // for a test that fails
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.http.ServeConn(newConn(server))
	}()
	go io.WriteString(client, sent)
	read(client)
	client.Close()
	<-served
	if s := s.stats()[0]; s.Running+s.Waiting+s.KVUsed != 0 {
		t.Fatalf("requests have not been released: %+v", s)
	}
}

// FuzzBody sends a body to every API. It gets an answer if it is valid and within
// the limits, otherwise an error object.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		`{"prompt":"hi"}`, `{"prompt":[1,2]}`, `{"prompt":["a"],"stream":true,"stream_options":{"include_usage":true}}`,
		`{"prompt":[[1]],"max_tokens":3,"min_tokens":2}`, `{"prompt":[`, `{"prompt":[]}`, `{"prompt":[[}`, `null`, ``,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a\u0000\ud800"}]}],"max_completion_tokens":1}`,
		`{"messages":[{"role":"assistant","content":"a"}],"n":1,"tools":[],"ignore_eos":true}`, "{\"prompt\":\"\xff\"}",
		`{"input":"hi","instructions":"a b","max_output_tokens":3,"stream":true,"text":{"format":{"type":"text"}}}`,
		`{"input":[{"type":"reasoning"},{"role":"user","content":[{"type":"input_text","text":"a"}]}]}`,
		`{"system":[{"type":"text","text":"a","cache_control":{}}],"messages":[{"role":"user","content":"a"}],"max_tokens":4,"stream":true}`,
		`{"text":"a b","sampling_params":{"max_new_tokens":3,"min_new_tokens":2,"ignore_eos":true},"stream":true}`,
		`{"input_ids":[1,2],"sampling_params":{"n":1}}`, `{"text":"a","input_ids":[`,
		`{"text":"a b","sampling_pa@ams":{"max_new_wxyzto\ens":3,"min_new_tokens":2,"ignore_eos":true},"sbream":true}`,
	} {
		f.Add([]byte(body))
	}
	s := serverOf(f, Config{Deployment: engine.Deployment{Engine: engine.Config{MaxModelLen: 64}}, ReasoningTokens: 2})
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, api := range apis {
			r, refused := s.cfg.parse(body, api)
			if refused == nil {
				isl, osl := r.prompt.Len(), r.most
				if !json.Valid(body) || isl < 1 || osl < 1 || isl+osl > 64 || r.min > osl {
					t.Errorf("accepted: %d tokens, %+v", isl, r)
				}
			}
			sent := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: sim\r\nContent-Length: %d\r\n\r\n%s", api.path, len(body), body)
			exchange(t, s, sent, func(c io.Reader) {
				res, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(res.Body)
				if err != nil {
					t.Fatal(err)
				}
				if (res.StatusCode == http.StatusOK) != (refused == nil) {
					t.Errorf("status %d, but the parser says %v", res.StatusCode, refused)
				}
				if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
					if !json.Valid(answer) {
						t.Errorf("the answer is not JSON: %q", answer)
					}
					return
				}
				checkEvents(t, string(answer))
			})
		}
	})
}

// checkEvents checks the events of a complete stream.
func checkEvents(t *testing.T, stream string) {
	t.Helper()
	var last event
	for _, last = range eventsOf(t, stream) {
		if !json.Valid([]byte(last.data)) && last.data != "[DONE]" {
			t.Errorf("malformed event: %q", last)
		}
	}
	if ends := []string{"message_stop", "response.completed", "response.incomplete"}; last.data != "[DONE]" && !slices.Contains(ends, last.name) {
		t.Fatalf("a stream that does not end: %q", stream)
	}
}

// FuzzConnection sends arbitrary bytes. They must neither crash the server nor leave
// anything behind.
func FuzzConnection(f *testing.F) {
	const post = "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: "
	for _, sent := range []string{
		"", "GET / HTTP/1.1\r\n\r\n", "GET /v1/models HTTP/1.0\r\n\r\n", post + "15\r\n\r\n{\"prompt\":\"hi\"}", post + "-1\r\n\r\n", "\r\n\r\n",
		"POST /generate HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nf\r\n{\"prompt\":\"hi\"}\r\n0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"HEAD /health HTTP/1.1\r\nExpect: 100-continue\r\n\r\n", "\x16\x03\x01", "CONNECT a:1 HTTP/1.1\r\n\r\n",
		post + "29\r\nX-Moontide-Fault: reset\r\n\r\n{\"prompt\":\"hi\",\"stream\":true}", post + "15\r\nX-Moontide-Fault: truncate\r\n\r\n{\"prompt\":\"hi\"}",
		post + "29\r\nX-Moontide-Fault: error\r\nX-Moontide-Stamps: 1\r\n\r\n{\"prompt\":\"hi\",\"stream\":true}GET /metrics HTTP/1.1\r\n\r\n",
		post + "15\r\nX-Moontide-Fault: garbage:\r\n\r\n{\"prompt\":\"hi\"}", post + "15\r\nX-Moontide-Fault: 429:0.5:1h\r\n\r\n{\"prompt\":\"hi\"}",
	} {
		f.Add(sent)
	}
	s := newServer(f, engine.Config{MaxModelLen: 64})
	f.Fuzz(func(t *testing.T, sent string) {
		if slow := regexp.MustCompile(`(?i)fault[^\n]*(delay|stall)`); slow.MatchString(sent) {
			t.Skip("a delay or a stall, which take their time")
		}
		exchange(t, s, sent, func(c io.Reader) {
			// Until it waits for more.
			c.(net.Conn).SetReadDeadline(time.Now().Add(time.Millisecond))
			io.Copy(io.Discard, c)
		})
	})
}
