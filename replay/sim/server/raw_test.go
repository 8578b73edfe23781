package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"moontide/replay/monotonic"
	"moontide/replay/openai/http1/http1test"
	"moontide/replay/sim/engine"
)

// post is a POST of a body with extra header lines, as bytes.
func post(path, body string, headers ...string) string {
	lines := ""
	for _, h := range headers {
		lines += h + "\r\n"
	}
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: sim\r\n%sContent-Length: %d\r\n\r\n%s", path, lines, len(body), body)
}

// rawConn is a client with a bare socket.
type rawConn struct {
	*net.TCPConn
	*bufio.Reader
	t *testing.T
}

func (c rawConn) Read(p []byte) (int, error) { return c.Reader.Read(p) }

// dial connects to a server on the loopback interface and sends something.
func (s *testServer) dial(sent string) rawConn {
	s.t.Helper()
	c, err := s.dialTCP()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute)) // for a test that fails
	if _, err := io.WriteString(c, sent); err != nil {
		s.t.Fatal(err)
	}
	return rawConn{c.(*net.TCPConn), bufio.NewReader(c), s.t}
}

// line reads a line, which must end in CRLF.
func (c rawConn) line() string {
	c.t.Helper()
	line, err := c.ReadString('\n')
	if err != nil || !strings.HasSuffix(line, "\r\n") {
		c.t.Fatalf("%q, %v", line, err)
	}
	return strings.TrimSuffix(line, "\r\n")
}

// header reads the header of a response and returns its status line.
func (c rawConn) header() string {
	c.t.Helper()
	status := c.line()
	for c.line() != "" {
	}
	return status
}

// chunk reads one chunk of a body; "" is the end.
func (c rawConn) chunk() string {
	c.t.Helper()
	size, err := strconv.ParseUint(c.line(), 16, 32)
	if err != nil {
		c.t.Fatal(err)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(c, data); err != nil {
		c.t.Fatal(err)
	}
	if end := c.line(); end != "" {
		c.t.Fatalf("a chunk goes on: %q", end)
	}
	return string(data)
}

// body reads the chunks of a body.
func (c rawConn) body() (text string) {
	c.t.Helper()
	for chunk := c.chunk(); chunk != ""; chunk = c.chunk() {
		text += chunk
	}
	return text
}

// rest reads to the end and returns "closed" or "reset".
func (c rawConn) rest() (text, end string) {
	c.t.Helper()
	b, err := io.ReadAll(c)
	switch {
	case err == nil:
		return string(b), "closed"
	case errors.Is(err, syscall.ECONNRESET):
		return string(b), "reset"
	}
	c.t.Fatalf("after %q: %v", b, err)
	return "", ""
}

var slowly = over(engine.Config{Costs: engine.Costs{Sequence: 2 * engine.Millisecond}})

const hello = `{"prompt":"hello","stream":true,"max_tokens":5,"ignore_eos":true}`

func events(text string) int { return strings.Count(text, "data: {") }

// Chunks contain whole events, several if the server is late. After the body,
// the connection continues with data sent meanwhile.
func TestStreamOnTheWire(t *testing.T) {
	s := startTCP(t, slowly)
	c := s.dial(post(completionPath, hello))
	for round := range 3 {
		if got := c.header(); got != "HTTP/1.1 200 OK" {
			t.Fatal(got)
		}
		if round < 2 {
			io.WriteString(c.TCPConn, post(completionPath, hello)) // while the stream goes on
		}
		text := ""
		for chunk := c.chunk(); chunk != ""; chunk = c.chunk() {
			if !strings.HasPrefix(chunk, "data: ") || !strings.HasSuffix(chunk, "\n\n") {
				t.Errorf("a torn chunk: %q", chunk)
			}
			text += chunk
		}
		if events(text) != 5 || !strings.HasSuffix(text, "data: [DONE]\n\n") {
			t.Errorf("%d events in\n%s", events(text), text)
		}
	}
}

const (
	runningMetric = `vllm:num_requests_running{engine="0",model_name="sim"}`
	waitingMetric = `vllm:num_requests_waiting{engine="0",model_name="sim"}`
	usageMetric   = `vllm:kv_cache_usage_perc{engine="0",model_name="sim"}`
	abortedMetric = `vllm:request_success_total{engine="0",model_name="sim",finished_reason="abort"}`
)

// until waits for a metric to have a value.
func (s *testServer) until(metric, value string) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); s.metric(metric) != value; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s is %s and does not come to be %s", metric, s.metric(metric), value)
		}
	}
}

// When a client leaves, in whatever way, nothing of its request stays, in whatever state
// it is. The next token is an hour away, so no write detects that it is gone.
func TestClientThatLeavesFreesItsBlocks(t *testing.T) {
	const hour = time.Hour
	for state, tt := range map[string]struct {
		deployment engine.Deployment
		metric     string // is 1 in that state,
		engine     int    // of the last engine
	}{
		"prefilling":   {engine.Deployment{Engine: engine.Config{Costs: engine.Costs{PrefillToken: engine.Hour}}}, runningMetric, 0},
		"decoding":     {engine.Deployment{Engine: engine.Config{Costs: engine.Costs{Sequence: engine.Hour}}}, runningMetric, 0},
		"out of step":  {engine.Deployment{Engine: engine.Config{PhasedTPOT: hour}}, runningMetric, 0},
		"transferring": {engine.Deployment{Prefill: 1, Decode: 1, Transfer: engine.Transfer{Base: hour}}, waitingMetric, 1},
		"decoding after a transfer": {engine.Deployment{Engine: engine.Config{Costs: engine.Costs{Sequence: engine.Hour}},
			Prefill: 1, Decode: 1}, runningMetric, 1},
	} {
		t.Run(state, func(t *testing.T) {
			tt.deployment.Engine.KVBlocks = 100
			s := startTCP(t, Config{Deployment: tt.deployment})
			of := func(metric string, engine int) string {
				return strings.Replace(metric, `engine="0"`, fmt.Sprintf(`engine="%d"`, engine), 1)
			}
			c := s.dial(post(completionPath, hello))
			s.until(of(tt.metric, tt.engine), "1")
			used := false
			for e := range tt.engine + 1 {
				used = used || s.metric(of(usageMetric, e)) != "0"
			}
			if !used {
				t.Error("it uses no block")
			}
			switch state { // other states end with a close
			case "prefilling":
				c.SetLinger(0)
				c.Close()
			case "decoding":
				c.CloseWrite()
			default:
				c.Close()
			}
			for e := range tt.engine + 1 {
				s.until(of(usageMetric, e), "0")
			}
			s.until(of(tt.metric, tt.engine), "0")
			s.until(abortedMetric, "1")
		})
	}
}

// A client that does not read does not delay others, and gets all its tokens
// when it reads again.
func TestSlowReaderHoldsUpNobody(t *testing.T) {
	s := startTCP(t, Config{})
	long := strings.Replace(hello, `"max_tokens":5`, `"max_tokens":25000`, 1) // 4 MB
	slow := s.dial(post(completionPath, long))
	if a := s.ask(completionPath, `{"prompt":"hi","max_tokens":3}`); a.Output != 3 {
		t.Errorf("%+v", a)
	}
	slow.header()
	if n := events(slow.body()); n != 25000 {
		t.Errorf("%d events", n)
	}
}

func TestFaultsBeforeAnAnswer(t *testing.T) {
	t.Parallel()
	s := startTCP(t, Config{})
	with := func(fault string) rawConn { return s.dial(post(completionPath, hello, "X-Moontide-Fault: "+fault)) }
	for fault, want := range map[string]string{
		"429":      `429 "1" rate_limit_error`,
		"429:1:3s": `429 "3" rate_limit_error`,
		"500":      `500 "" server_error`,
		"delay:2":  `400 "" invalid_request_error`,
	} {
		res := s.open("POST", completionPath, hello, "X-Moontide-Fault", fault)
		body, _ := io.ReadAll(res.Body)
		_, kind, _ := strings.Cut(string(body), `"type":"`)
		kind, _, _ = strings.Cut(kind, `"`)
		if got := fmt.Sprintf("%d %q %s", res.StatusCode, res.Header.Get("Retry-After"), kind); got != want {
			t.Errorf("%s: %s, want %s", fault, got, want)
		}
	}
	// Only the fault takes this long; a client that does not wait for its end
	// leaves.
	delayed := with("delay:1:1h")
	if got := s.metric(runningMetric) + s.metric(waitingMetric); got != "00" {
		t.Errorf("a delayed request is under way: %s", got)
	}
	delayed.Close()
	if got := with("delay:1:1ms").header(); got != "HTTP/1.1 200 OK" {
		t.Error(got)
	}
}

// A stream with a stall or garbage says the same as one without it. An answer that is
// not streamed fails.
func TestFaultsInAStream(t *testing.T) {
	t.Parallel()
	s := startTCP(t, slowly)
	long := strings.Replace(hello, `"max_tokens":5`, `"max_tokens":40`, 1)
	with := func(fault string) rawConn {
		c := s.dial(post(completionPath, long, "X-Moontide-Fault: "+fault))
		if got := c.header(); got != "HTTP/1.1 200 OK" {
			t.Fatal(got)
		}
		return c
	}
	_, plain := s.do("POST", completionPath, long)
	if text := with("stall:1:50ms").body(); constant(text) != constant(plain) {
		t.Errorf("stall: another text:\n%s\nwant\n%s", text, plain)
	}
	if text := with("garbage").body(); strings.Count(text, "\xff\xfe\x00") != 1 || constant(strings.Replace(text, garbage, "", 1)) != constant(plain) {
		t.Errorf("garbage: %q", text)
	}
	stalled := with("stall") // it ends with its client
	stalled.chunk()
	stalled.Close()
	s.until(runningMetric, "0")
	for _, fault := range []string{"reset", "error", "stall"} {
		_, body := s.do("POST", completionPath, `{"prompt":"hello"}`, "X-Moontide-Fault", fault)
		if !strings.Contains(body, `"server_error"`) {
			t.Errorf("%s of a whole answer: %s", fault, body)
		}
	}
}

var stampPattern = regexp.MustCompile(`"written_ns":([0-9]+)}`)

// With the header for stamps every event of every API has the instant of its writing,
// between request and arrival.
func TestStamps(t *testing.T) {
	s := startTCP(t, slowly)
	for _, d := range dialects {
		last := monotonic.At(time.Now())
		c := s.dial(post(d.path, d.request(5, `,"stream":true,"ignore_eos":true`), "X-Moontide-Stamps: 1"))
		c.header()
		for chunk := c.chunk(); chunk != ""; chunk = c.chunk() {
			now := monotonic.At(time.Now())
			stamps := stampPattern.FindAllStringSubmatch(chunk, -1)
			if len(stamps) != events(chunk) {
				t.Errorf("%s: %d stamps in %s", d.path, len(stamps), chunk)
			}
			for _, m := range stamps {
				at, err := strconv.ParseInt(m[1], 10, 64)
				if err != nil || at < last || at > now {
					t.Errorf("%s: written at %d, not from %d to %d: %v", d.path, at, last, now, err)
				}
				last = at
			}
		}
		if _, text := s.do("POST", d.path, d.request(5, `,"stream":true`)); stampPattern.MatchString(text) {
			t.Errorf("unrequested stamps: %s", text)
		}
	}
}

// soon is a context for a Shutdown that has nothing to wait for: shorter than the
// server's own timeouts, long enough for any machine.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestShutdownEndsWhatIsInFlight(t *testing.T) {
	s := start(t, over(engine.Config{Costs: engine.Costs{Sequence: engine.Hour}}))
	stream := s.open("POST", completionPath, `{"prompt":"hi","stream":true,"max_tokens":9,"ignore_eos":true}`)
	firstEvents(t, stream.Body, 1)

	whole := make(chan int, 1)
	go func() {
		status, _ := s.do("POST", completionPath, `{"prompt":"hi","max_tokens":9,"ignore_eos":true}`)
		whole <- status
	}()
	s.until(waitingMetric, "1") // for the hour of the first to end
	if err := s.Shutdown(soon(t)); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(stream.Body); err == nil {
		t.Error("a stream that was cut ends as if it were complete")
	}
	if status := <-whole; status != 503 {
		t.Errorf("an answer that was waited for: status %d, want 503", status)
	}
	if err := s.Shutdown(soon(t)); err != nil {
		t.Errorf("the second Shutdown: %v", err)
	}
}

// Shutdown closes connections that say nothing, and others when its context ends: here one
// with a body that never comes. The server says when it begins to wait for it.
func TestShutdownClosesConnections(t *testing.T) {
	const half, waits = "POST /v1/completions HTTP/1.1\r\nHost: sim\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n"
	for _, sent := range []string{"", half} {
		s := start(t, Config{})
		conn, err := s.dialTCP()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithCancel(soon(t))
		defer cancel()
		var want error
		if sent != "" {
			io.WriteString(conn, sent)
			if b, err := io.ReadAll(io.LimitReader(conn, int64(len(waits)))); err != nil || string(b) != waits {
				t.Fatalf("%q, %v", b, err)
			}
			cancel()
			want = context.Canceled
		}
		if err := s.Shutdown(ctx); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", sent, err, want)
		}
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("%q: the connection is not closed: %v", sent, err)
		}
	}
}

type brokenListener struct{ net.Listener }

func (brokenListener) Accept() (net.Conn, error) { return nil, errors.New("no more sockets") }
func (brokenListener) Close() error              { return nil }

// Serve reports what is wrong with its listener, and closes it at once after a shutdown.
func TestServe(t *testing.T) {
	s, ln := newServer(t, engine.Config{}), http1test.NewPipes()
	if err := s.Serve(brokenListener{}); err == nil || err.Error() != "serving: no more sockets" {
		t.Errorf("Serve: %v", err)
	}
	if err := errors.Join(s.Shutdown(soon(t)), s.Serve(ln)); err != nil {
		t.Error(err)
	}
	if _, err := ln.Accept(); err == nil {
		t.Error("Serve left its listener open")
	}
}

// Shutdown ends long faults.
func TestShutdownDoesNotWaitForFaults(t *testing.T) {
	t.Parallel()
	s := startTCP(t, Config{})
	whole := strings.Replace(hello, "true", "false", 1)
	var conns []rawConn
	for _, request := range []string{
		post(completionPath, whole, "X-Moontide-Fault: delay:1:1h"), post(completionPath, hello, "X-Moontide-Fault: delay:1:1h"),
		post(completionPath, whole, "X-Moontide-Fault: stall"), post(completionPath, hello, "X-Moontide-Fault: stall"),
	} {
		conns = append(conns, s.dial(request))
	}
	conns[3].header()
	if err := s.Shutdown(soon(t)); err != nil {
		t.Error(err)
	}
	for i, c := range conns {
		if text, _ := c.rest(); strings.Contains(text, "[DONE]") || strings.Contains(text, "200 OK") {
			t.Errorf("request %d: %q", i, text)
		}
	}
}

// Connections that say nothing make room for others.
func TestMostConnections(t *testing.T) {
	t.Parallel()
	s := startTCP(t, Config{MaxConnections: 2})
	silent := []rawConn{s.dial(""), s.dial("")}
	for range 3 {
		if line := s.dial("GET /health HTTP/1.1\r\nHost: sim\r\n\r\n").line(); !strings.HasPrefix(line, "HTTP/1.1 200") {
			t.Errorf("%q", line)
		}
	}
	for _, c := range silent {
		if _, err := c.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("it is still open: %v", err)
		}
	}
}
