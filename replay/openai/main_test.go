package openai

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/tracetest"
)

func TestMain(m *testing.M) {
	tracetest.Waiting()
	goleak.VerifyTestMain(m,
		// Of the example's server: fasthttp does not end them.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}

// peer is the server's end of one connection, with which a test controls every
// byte.
type peer struct {
	net.Conn
	t  *testing.T
	in *bufio.Reader
}

// request reads one request and returns its body.
func (p *peer) request() (*http.Request, string) {
	r, err := http.ReadRequest(p.in)
	if err != nil {
		return nil, ""
	}
	body, err := io.ReadAll(r.Body)
	if err != nil { // the client gave up while it sent it
		return nil, ""
	}
	return r, string(body)
}

// say writes texts, each with a write of its own.
func (p *peer) say(texts ...string) {
	for _, text := range texts {
		io.WriteString(p, text)
	}
}

// flood writes a text until the client hangs up.
func (p *peer) flood(text string) {
	for all := strings.Repeat(text, 64<<10/len(text)+1); ; {
		if _, err := io.WriteString(p, all); err != nil {
			return
		}
	}
}

// hold keeps the connection open until the client closes it.
func (p *peer) hold() { io.Copy(io.Discard, p.in) }

// reset hangs up so that the client sees a reset, not an end.
func (p *peer) reset() {
	p.Conn.(*net.TCPConn).SetLinger(0)
	p.Close()
}

// fakeServer runs scripts, the n-th on its n-th connection and the last on all
// that follow. A connection is closed when its script returns.
type fakeServer struct {
	url      string
	mu       sync.Mutex
	accepted int
	running  int // scripts
	ended    *sync.Cond
}

// wait returns when all scripts have ended; those that hold a connection end when
// the client closes it.
func (s *fakeServer) wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.running > 0 {
		s.ended.Wait()
	}
}

// run runs a script to its end.
func (s *fakeServer) run(script func(*peer), p *peer) {
	script(p)
	p.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	s.ended.Broadcast()
}

func serve(t *testing.T, scripts ...func(*peer)) *fakeServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &fakeServer{url: "http://" + ln.Addr().String()}
	s.ended = sync.NewCond(&s.mu)
	var open []net.Conn
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			script := scripts[min(s.accepted, len(scripts)-1)]
			s.accepted++
			s.running++
			open = append(open, c)
			s.mu.Unlock()
			go s.run(script, &peer{c, t, bufio.NewReader(c)})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		s.mu.Lock()
		for _, c := range open {
			c.Close()
		}
		s.mu.Unlock()
		accepting.Wait()
		s.wait()
	})
	return s
}

func (s *fakeServer) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// nobody is an address where no server listens. A port that was free a moment ago
// might be taken by another test.
const nobody = "http://127.0.0.1:1"

// client is a Client of the server for requests of a model named m.
func client(t *testing.T, url string, edits ...func(*Config)) *Client {
	t.Helper()
	cfg := Config{URL: url, Model: "m", Timeout: time.Hour}
	for _, edit := range edits {
		edit(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func soon(cfg *Config) { cfg.Timeout = 50 * time.Millisecond }

// row is a small request.
var row = trace.Request{InputLength: 3, OutputLength: 4}

func prepare(t *testing.T, c *Client, r trace.Request) *call {
	t.Helper()
	made, err := c.Prepare(r, 0)
	if err != nil {
		t.Fatal(err)
	}
	return made.(*call)
}

func send(t *testing.T, c *Client) replay.Outcome {
	t.Helper()
	return prepare(t, c, row).Send(context.Background())
}

func wantOK(t *testing.T, o replay.Outcome, chunks int) {
	t.Helper()
	wantClass(t, o, replay.OK, "")
	if o.Status != 200 || o.First.IsZero() || len(o.Gaps) != chunks-1 {
		t.Errorf("status %d, %d gaps for %d chunks", o.Status, len(o.Gaps), chunks)
	}
}

// wantClass also checks what holds for every outcome.
func wantClass(t *testing.T, o replay.Outcome, class replay.Class, text string) {
	t.Helper()
	if o.Class != class || !strings.Contains(o.Error, text) {
		t.Errorf("class %q (%s), want %q (%s)", o.Class, o.Error, class, text)
	}
	if (o.Error == "") != (class == replay.OK) || strings.Contains(o.Error, "\n") {
		t.Errorf("error text %q of class %q", o.Error, o.Class)
	}
	if o.Done.IsZero() || o.Done.Before(o.Sent) || o.Done.Before(o.Last) {
		t.Errorf("done %v, sent %v, last %v", o.Done, o.Sent, o.Last)
	}
	if o.First.IsZero() {
		if !o.Last.IsZero() || len(o.Gaps) > 0 {
			t.Error("gaps or a last chunk without a first one")
		}
		return
	}
	var sum time.Duration
	for _, gap := range o.Gaps {
		if gap < 0 {
			t.Errorf("gap of %v", gap)
		}
		sum += gap
	}
	if o.Sent.IsZero() || o.First.Before(o.Sent) || sum != o.Last.Sub(o.First) {
		t.Errorf("sent %v, first %v, last %v, gaps sum to %v", o.Sent, o.First, o.Last, sum)
	}
}

// Parts of responses.
const (
	streamed  = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
	untilEnd  = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	lastChunk = "0\r\n\r\n"

	role     = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n"
	tide     = `data: {"choices":[{"index":0,"text":" tide","finish_reason":null}]}` + "\n\n"
	finish   = `data: {"choices":[{"index":0,"text":"","finish_reason":"length"}]}` + "\n\n"
	tokens   = `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":1}}}` + "\n\n"
	theEnd   = "data: [DONE]\n\n"
	complete = tide + tide + finish + tokens + theEnd
)

// inChunk returns text as a chunk of a chunked body.
func inChunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// answerOf returns a response with a head and a body.
func answerOf(status, kind, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", status, kind, len(body), body)
}

// wellBehaved answers every request in full.
func wellBehaved(p *peer) {
	always(func(p *peer, _ *http.Request, _ string) {
		p.say(streamed+inChunk(tide), inChunk(tide+finish+tokens)+inChunk(theEnd)+lastChunk)
	})(p)
}

// always answers each request of a connection.
func always(answer func(p *peer, r *http.Request, body string)) func(*peer) {
	return func(p *peer) {
		for {
			r, body := p.request()
			if r == nil {
				return
			}
			answer(p, r, body)
		}
	}
}

// once runs a script after the first request.
func once(script func(*peer)) func(*peer) {
	return func(p *peer) {
		if r, _ := p.request(); r != nil {
			script(p)
		}
	}
}

// says answers the first request with texts and hangs up.
func says(texts ...string) func(*peer) {
	return once(func(p *peer) { p.say(texts...) })
}
