package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"moontide/replay/openai/http1/http1test"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/server"
	"moontide/trace/routing"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// fasthttp does not end these.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}

// testServer is a server with a client.
type testServer struct {
	*server.Server
	t      *testing.T
	client http.Client
	dials  atomic.Int32
	// dialTCP connects without the client.
	dialTCP func() (net.Conn, error)
}

// over returns the configuration of a server with one engine.
func over(cfg engine.Config) server.Config {
	return server.Config{Deployment: engine.Deployment{Engine: cfg}}
}

func newServer(t *testing.T, cfg server.Config) *server.Server {
	t.Helper()
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start serves in memory.
func start(t *testing.T, cfg server.Config) *testServer {
	t.Helper()
	ln := http1test.NewPipes()
	return startOn(t, cfg, ln, ln.Dial)
}

// startTCP serves on the loopback interface.
func startTCP(t *testing.T, cfg server.Config) *testServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, cfg, ln, func() (net.Conn, error) { return net.Dial("tcp", ln.Addr().String()) })
}

func startOn(t *testing.T, cfg server.Config, ln net.Listener, dial func() (net.Conn, error)) *testServer {
	t.Helper()
	s := &testServer{Server: newServer(t, cfg), t: t, dialTCP: dial}
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
func (s *testServer) open(method, path, body string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequest(method, "http://sim"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	return res
}

// do sends a request and returns the status and the whole body.
func (s *testServer) do(method, path, body string) (int, string) {
	s.t.Helper()
	res := s.open(method, path, body)
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

var changing = regexp.MustCompile(`"(id":"(?:chat)?cmpl)-[0-9a-f]{32}"|"created":[0-9]{10}\b`)

// constant replaces the parts that differ between runs.
func constant(s string) string {
	return changing.ReplaceAllStringFunc(s, func(m string) string {
		if strings.HasPrefix(m, `"created`) {
			return `"created":0`
		}
		return m[:strings.LastIndexByte(m, '-')] + `-X"`
	})
}

// numbered replaces the generated words by numbers.
func numbered(s string) string {
	n := 0
	return regexp.MustCompile(`((?:content|text)":") [a-z]+"`).ReplaceAllStringFunc(s, func(m string) string {
		n++
		return fmt.Sprintf(`%s %d"`, m[:strings.LastIndexByte(m, ' ')], n)
	})
}

const (
	chatPath       = "/v1/chat/completions"
	completionPath = "/v1/completions"
)

func TestStreamedChat(t *testing.T) {
	s := start(t, server.Config{})
	res := s.open("POST", chatPath, `{"model":"sim","stream":true,"max_tokens":3,"ignore_eos":true,
		"stream_options":{"include_usage":true},"temperature":0.5,
		"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"how are you"}]}`)
	if got := res.Header.Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
	if got := res.Header.Get("Cache-Control"); got != "no-cache" {
		t.Errorf("cache control %q", got)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	const head = `data: {"id":"chatcmpl-X","object":"chat.completion.chunk","created":0,"model":"sim","choices":[`
	want := head + `{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}` + "\n\n" +
		head + `{"index":0,"delta":{"content":" 1"},"logprobs":null,"finish_reason":null}]}` + "\n\n" +
		head + `{"index":0,"delta":{"content":" 2"},"logprobs":null,"finish_reason":null}]}` + "\n\n" +
		head + `{"index":0,"delta":{"content":" 3"},"logprobs":null,"finish_reason":"length","stop_reason":null}]}` + "\n\n" +
		head + `],"usage":{"prompt_tokens":5,"total_tokens":8,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":0}}}` + "\n\n" +
		"data: [DONE]\n\n"
	if diff := cmp.Diff(want, numbered(constant(string(body)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStreamedCompletion(t *testing.T) {
	s := start(t, server.Config{Model: `a "model"`})
	_, body := s.do("POST", completionPath, `{"prompt":[1,2,3],"stream":true,"max_tokens":2}`)
	const head = `data: {"id":"cmpl-X","object":"text_completion","created":0,"model":"a \"model\"","choices":[`
	want := head + `{"index":0,"text":" 1","logprobs":null,"finish_reason":null}]}` + "\n\n" +
		head + `{"index":0,"text":" 2","logprobs":null,"finish_reason":"length","stop_reason":null}]}` + "\n\n" +
		"data: [DONE]\n\n"
	if diff := cmp.Diff(want, numbered(constant(body))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// With continuous_usage_stats each event has the usage so far.
func TestContinuousUsage(t *testing.T) {
	s := start(t, over(engine.Config{BlockSize: 1}))
	s.do("POST", completionPath, `{"prompt":"a b"}`)
	counted := regexp.MustCompile(`"prompt_tokens":([0-9]+),"total_tokens":([0-9]+),"completion_tokens":([0-9]+),"prompt_tokens_details":\{"cached_tokens":([0-9]+)\}\}\}\n`)
	for options, want := range map[string]string{
		`{"include_usage":true,"continuous_usage_stats":true}`:  "[3 3 0 2] [3 4 1 2] [3 5 2 2] [3 6 3 2] [3 6 3 2] ",
		`{"include_usage":true,"continuous_usage_stats":false}`: "[3 6 3 2] ",
		`{"include_usage":false,"continuous_usage_stats":true}`: "",
		`{}`: "",
	} {
		_, body := s.do("POST", chatPath, `{"messages":[{"role":"user","content":"a b c"}],"max_tokens":3,"stream":true,"stream_options":`+options+`}`)
		got := ""
		for _, m := range counted.FindAllStringSubmatch(body, -1) {
			got += fmt.Sprint(m[1:]) + " "
		}
		if got != want || strings.Count(body, `"usage"`) != strings.Count(want, "[") {
			t.Errorf("%s: %s, want %s, in\n%s", options, got, want, body)
		}
	}
}

// With the header of a session all requests of a conversation go to one engine.
func TestSessionsOverHTTP(t *testing.T) {
	s := startTCP(t, server.Config{Deployment: engine.Deployment{
		Engine: engine.Config{BlockSize: 1}, Engines: 3, Routing: routing.Session,
	}})
	cached := func(headers ...string) string {
		t.Helper()
		res, err := http.ReadResponse(s.dial(post(completionPath, `{"prompt":"a b c d","max_tokens":1}`, headers...)).Reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(body), `"cached_tokens":`)
		return strings.TrimRight(rest, "}")
	}
	for i, want := range []string{"0", "3", "3", "3"} {
		if got := cached("X-Session-ID: one"); got != want {
			t.Errorf("request %d of a session: %s tokens cached, want %s", i, got, want)
		}
	}
	// Without a session it is the engines' turn, one of which has seen it.
	all := cached() + cached() + cached()
	if strings.Count(all, "0") != 2 || strings.Count(all, "3") != 1 {
		t.Errorf("cached on three engines: %s", all)
	}
}

func TestWholeAnswers(t *testing.T) {
	s := start(t, server.Config{})
	words := regexp.MustCompile(`"(?: [a-z]+){2}"`)
	for _, tt := range []struct{ path, body, want string }{
		{chatPath, `{"messages":[{"role":"user","content":"hi"}],"max_tokens":2}`,
			`{"id":"chatcmpl-X","object":"chat.completion","created":0,"model":"sim","choices":[` +
				`{"index":0,"message":{"role":"assistant","content":"2 words"},"logprobs":null,"finish_reason":"length","stop_reason":null}],` +
				`"usage":{"prompt_tokens":1,"total_tokens":3,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}`},
		{completionPath, `{"prompt":"hi there","max_tokens":2}`,
			`{"id":"cmpl-X","object":"text_completion","created":0,"model":"sim","choices":[` +
				`{"index":0,"text":"2 words","logprobs":null,"finish_reason":"length","stop_reason":null}],` +
				`"usage":{"prompt_tokens":2,"total_tokens":4,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}`},
	} {
		status, body := s.do("POST", tt.path, tt.body)
		if got := words.ReplaceAllString(constant(body), `"2 words"`); status != 200 || got != tt.want {
			t.Errorf("%s: status %d\n got %s\nwant %s", tt.path, status, got, tt.want)
		}
	}
}

// answer is a response that is not streamed.
type answer struct {
	Choices []struct {
		Text         string `json:"text"`
		FinishReason string `json:"finish_reason"`
		Message      struct {
			Content string `json:"content"`
		} `json:"message"`
	} `json:"choices"`
	Usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

func (s *testServer) ask(path, body string) answer {
	s.t.Helper()
	status, text := s.do("POST", path, body)
	var a answer
	if err := json.Unmarshal([]byte(text), &a); status != 200 || err != nil || len(a.Choices) != 1 {
		s.t.Fatalf("%s: status %d, %v: %s", body, status, err, text)
	}
	return a
}

func TestPromptForms(t *testing.T) {
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
	} {
		a := s.ask(tt.path, tt.body)
		if a.Usage.Prompt != tt.tokens || a.Usage.Details.Cached != tt.cached {
			t.Errorf("%s: %d tokens, %d cached; want %d, %d", tt.body, a.Usage.Prompt, a.Usage.Details.Cached, tt.tokens, tt.cached)
		}
	}
}

func TestAnswerLengths(t *testing.T) {
	s := start(t, over(engine.Config{MaxModelLen: 2000}))
	const chat = `{"messages":[{"role":"user","content":"hello you"}]`
	natural := s.ask(chatPath, chat+"}")
	n := natural.Usage.Completion
	if n < 16 || n > 512 || natural.Choices[0].FinishReason != "stop" {
		t.Fatalf("left alone, the answer had %d tokens and ended with %q", n, natural.Choices[0].FinishReason)
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
		c := a.Choices[0]
		if a.Usage.Completion != tt.tokens || c.FinishReason != tt.finish || a.Usage.Total != tt.tokens+2 {
			t.Errorf("%s: %+v %s, want %d tokens, %s", tt.body, a.Usage, c.FinishReason, tt.tokens, tt.finish)
		}
		if got := len(strings.Fields(c.Text + c.Message.Content)); got != tt.tokens {
			t.Errorf("%s: %d words in an answer of %d tokens", tt.body, got, tt.tokens)
		}
	}
}

func TestPlainPages(t *testing.T) {
	cfg := over(engine.Config{MaxModelLen: 4096})
	cfg.Model, cfg.Version = `org/"m"`, "v1"
	s := start(t, cfg)
	if status, body := s.do("GET", "/version", ""); status != 200 || body != `{"version":"v1"}` {
		t.Errorf("/version: %d %s", status, body)
	}
	for _, d := range dialects { // real servers ignore a query that they do not know
		if status, body := s.do("POST", d.path+"?api-version=2024-10-21&beta=true", strings.Replace(d.request(3, ""), "{", `{"model":"org/\"m\"",`, 1)); status != 200 {
			t.Errorf("%s: %d %s", d.path, status, body)
		}
	}
	if status, body := s.do("GET", "/health", ""); status != 200 || body != "" {
		t.Errorf("/health: %d %q", status, body)
	}
	status, body := s.do("GET", "/v1/models", "")
	want := `{"object":"list","data":[{"id":"org/\"m\"","object":"model","created":0,"owned_by":"moontide","root":"org/\"m\"","parent":null,"max_model_len":4096}]}`
	if status != 200 || constant(body) != want {
		t.Errorf("/v1/models: %d\n got %s\nwant %s", status, constant(body), want)
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

	// Nor are the headers held back for the first token.
	s = start(t, over(engine.Config{Costs: engine.Costs{PrefillToken: engine.Hour}}))
	s.open("POST", chatPath, `{"messages":[{"role":"user","content":"a b"}],"stream":true}`)
	s.open("POST", completionPath, `{"prompt":"a b","stream":true}`)
	s.until(runningMetric, "1") // the step that was begun holds one
	s.until(waitingMetric, "1")
}
