package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"moontide/replay/openai/http1/http1test"
	"moontide/replay/sim/engine"
	"moontide/trace/routing"
	"moontide/trace/tracetest"
)

func TestMain(m *testing.M) {
	tracetest.Waiting()
	goleak.VerifyTestMain(m,
		// fasthttp does not end these.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}

// testServer is a server with a client.
type testServer struct {
	*Server
	t      *testing.T
	client http.Client
	dials  atomic.Int32
	// dialTCP connects without the client.
	dialTCP func() (net.Conn, error)
}

// over returns the configuration of a server with one engine.
func over(cfg engine.Config) Config {
	return Config{Deployment: engine.Deployment{Engine: cfg}}
}

// start serves in memory.
func start(t *testing.T, cfg Config) *testServer {
	t.Helper()
	ln := http1test.NewPipes()
	return startOn(t, cfg, ln, ln.Dial)
}

// startTCP serves on the loopback interface.
func startTCP(t *testing.T, cfg Config) *testServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, cfg, ln, func() (net.Conn, error) { return net.Dial("tcp", ln.Addr().String()) })
}

func startOn(t *testing.T, cfg Config, ln net.Listener, dial func() (net.Conn, error)) *testServer {
	t.Helper()
	of, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &testServer{Server: of, t: t, dialTCP: dial}
	transport := &http.Transport{
		DisableCompression: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			s.dials.Add(1)
			return dial()
		},
	}
	s.client.Transport = transport
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve returned %v after Shutdown", err)
		}
		transport.CloseIdleConnections()
	})
	return s
}

// open sends a request and returns the response, whose body is still open.
func (s *testServer) open(method, path, body string, headers ...string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequest(method, "http://sim"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	return res
}

// do sends a request and returns the status and the whole body.
func (s *testServer) do(method, path, body string, headers ...string) (int, string) {
	s.t.Helper()
	res := s.open(method, path, body, headers...)
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res.StatusCode, string(b)
}

func (s *testServer) metric(name string) string {
	s.t.Helper()
	_, text := s.do("GET", "/metrics", "")
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	s.t.Fatalf("no metric %s in\n%s", name, text)
	return ""
}

const (
	chatPath       = "/v1/chat/completions"
	completionPath = "/v1/completions"
)

// With the header of a session all requests of a conversation go to one engine.
func TestSessionsOverHTTP(t *testing.T) {
	s := start(t, Config{Deployment: engine.Deployment{
		Engine: engine.Config{BlockSize: 1}, Engines: 3, Routing: routing.Session,
	}})
	cached := func(headers ...string) string {
		_, body := s.do("POST", completionPath, `{"prompt":"a b c d","max_tokens":1}`, headers...)
		_, rest, _ := strings.Cut(body, `"cached_tokens":`)
		return strings.TrimRight(rest, "}")
	}
	for i, want := range []string{"0", "3", "3", "3"} {
		if got := cached("X-Session-ID", "one"); got != want {
			t.Errorf("request %d of a session: %s tokens cached, want %s", i, got, want)
		}
	}
	// Without a session it is the engines' turn, one of which has seen it.
	all := cached() + cached() + cached()
	if strings.Count(all, "0") != 2 || strings.Count(all, "3") != 1 {
		t.Errorf("cached on three engines: %s", all)
	}
}

// ask sends a request and reads the choices of the answer.
func (s *testServer) ask(path, body string) (got said) {
	s.t.Helper()
	status, text := s.do("POST", path, body)
	if status != 200 {
		s.t.Fatalf("%s: status %d: %s", body, status, text)
	}
	got.read(s.t, "", []byte(text))
	return got
}

func TestPromptForms(t *testing.T) {
	t.Parallel()
	s := start(t, over(engine.Config{BlockSize: 1}))
	for _, tt := range []struct {
		path, body     string
		tokens, cached int
	}{
		{completionPath, `{"prompt":"one two  three\n"}`, 3, 0},
		{completionPath, `{"prompt":["one two three four"]}`, 4, 3},
		{completionPath, `{"prompt":[ 7, 8 ,4294967295]}`, 3, 0},
		{completionPath, `{"prompt":[[7,8,9]]}`, 3, 2},
		{completionPath, `{"prompt":" \u0037 8\t9"}`, 3, 0}, // words are no ids
		{chatPath, `{"messages":[{"role":"system","content":"one"},{"role":"user","content":"two three"}]}`, 3, 2},
		{chatPath, `{"messages":[{"role":"developer","content":[{"type":"text","text":"one two"},{"type":"text","text":"three"}]},
			{"role":"assistant","content":null,"tool_calls":[]},{"role":"tool","content":"four"},{"role":"user","content":""}]}`, 4, 3},
		// The reasoning that a client sends back is not input.
		{messagesPath, `{"max_tokens":1,"messages":[{"role":"user","content":"a b"},{"role":"assistant","content":[
			{"type":"thinking","thinking":"x y z","signature":"s"},{"type":"redacted_thinking","data":"x"},{"type":"text","text":"c"}]},{"role":"user","content":"d"}]}`, 4, 0},
		{responsesPath, `{"max_output_tokens":1,"input":[{"role":"user","content":"a b"},{"type":"reasoning","id":"rs_1","summary":[],"content":[]},
			{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"c","annotations":[]}]},{"role":"user","content":"d"}]}`, 4, 3},
	} {
		a := s.ask(tt.path, tt.body)
		if a.Input != tt.tokens || a.Cached != tt.cached {
			t.Errorf("%s: %d tokens, %d cached; want %d, %d", tt.body, a.Input, a.Cached, tt.tokens, tt.cached)
		}
	}
}

func TestAnswerLengths(t *testing.T) {
	t.Parallel()
	s := start(t, over(engine.Config{MaxModelLen: 2000}))
	const chat = `{"messages":[{"role":"user","content":"hello you"}]`
	natural := s.ask(chatPath, chat+"}")
	n := natural.Output
	if n < 16 || n > 512 || natural.Finish != "stop" {
		t.Fatalf("left alone, the answer had %d tokens and ended with %q", n, natural.Finish)
	}
	for _, tt := range []struct {
		path, body string
		tokens     int
		finish     string
	}{
		{chatPath, chat + `,"max_tokens":1500}`, n, "stop"},
		{chatPath, chat + fmt.Sprintf(`,"max_tokens":%d}`, n-1), n - 1, "length"},
		{chatPath, chat + `,"max_tokens":5,"max_completion_tokens":7}`, 7, "length"},
		{chatPath, chat + `,"max_completion_tokens":7,"max_tokens":null}`, 7, "length"},
		{chatPath, chat + `,"min_tokens":1000}`, 1000, "stop"},
		{chatPath, chat + `,"ignore_eos":true,"max_tokens":1000}`, 1000, "length"},
		{chatPath, chat + `,"ignore_eos":true}`, 1998, "length"},
		{completionPath, `{"prompt":"hello you","ignore_eos":true}`, 16, "length"},
		{completionPath, `{"prompt":"hello you","max_tokens":1998}`, n, "stop"},
	} {
		a := s.ask(tt.path, tt.body)
		if words := len(strings.Fields(a.Text)); a.Output != tt.tokens || words != tt.tokens || a.Finish != tt.finish {
			t.Errorf("%s: %d tokens, %d words, %s; want %d tokens, %s", tt.body, a.Output, words, a.Finish, tt.tokens, tt.finish)
		}
	}
}

// firstEvents reads n events of an open stream.
func firstEvents(t *testing.T, body io.Reader, n int) {
	t.Helper()
	lines := bufio.NewScanner(body)
	for n > 0 && lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data: ") {
			n--
		}
	}
	if n > 0 {
		t.Fatalf("the stream ended %d events too early: %v", n, lines.Err())
	}
}

func TestEventsAreSentWhenDue(t *testing.T) {
	// The second token is an hour away, so the first can only be here if it
	// was not held back for more.
	s := start(t, over(engine.Config{Costs: engine.Costs{Sequence: engine.Hour}}))
	res := s.open("POST", chatPath, `{"messages":[{"role":"user","content":"a b"}],"stream":true,"max_tokens":9,"ignore_eos":true}`)
	firstEvents(t, res.Body, 2)

	// Nor are the headers held back for the first token, or the first events of
	// responses.
	s = start(t, over(engine.Config{Costs: engine.Costs{PrefillToken: engine.Hour}}))
	firstEvents(t, s.open("POST", responsesPath, `{"input":"a b","stream":true}`).Body, 2)
	s.open("POST", chatPath, `{"messages":[{"role":"user","content":"a b"}],"stream":true}`)
	s.until(runningMetric, "1") // the step that was begun holds one
	s.until(waitingMetric, "1")
}

// Each rank of each engine has its own lines.
func TestMetrics(t *testing.T) {
	t.Parallel()
	cfg := over(engine.Config{KVBlocks: 50, Ranks: 2})
	cfg.Model, cfg.Deployment.Engines, cfg.Deployment.Routing = `a"b`, 2, routing.RoundRobin
	s := start(t, cfg)
	for range 5 { // first one rank of each engine, then the other
		s.ask(completionPath, `{"prompt":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17],"max_tokens":4}`)
	}
	s.do("POST", completionPath, `{"prompt":[1],"max_tokens":4,"stream":true}`)
	s.ask(completionPath, `{"prompt":"hi","max_tokens":600}`)
	res := s.open("GET", "/metrics", "")
	if got := res.Header.Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	tracetest.Golden(t, "testdata/metrics.txt", string(got))
}
