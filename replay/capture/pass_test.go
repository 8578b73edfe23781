package capture

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"moontide/replay"
)

// raw sends the text of a request over a connection of its own.
func raw(t *testing.T, address, request string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, strings.ReplaceAll(request, "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
	return conn
}

// Headers between the client and the proxy end there, see RFC 9110, 7.6.1, others pass
// in both directions, and so does a query that Go cannot parse.
func TestHeaders(t *testing.T) {
	var got *http.Request
	server := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "server")
		w.Header().Set("Keep-Alive", "timeout=5")
		w.Header().Set("X-Request-Id", "7")
		w.Header()["Date"] = nil
	})
	c := capturing(t, server)
	conn := raw(t, c.url, `GET /v1/models?a=1;b&c=%zz HTTP/1.1
Host: example.com
Connection: X-Hop, close
X-Hop: client
Keep-Alive: timeout=5
Proxy-Connection: keep-alive
Proxy-Authorization: secret
TE: trailers, deflate
Upgrade: h2c
HTTP2-Settings: AAMAAABkAAQAAP__
Authorization: Bearer key
Forwarded: for=10.0.0.1;proto=https
X-Forwarded-For: 10.0.0.1
X-Forwarded-Proto: https
Via: 1.0 edge

`)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Header.Del("Date") // a proxy adds it
	host := strings.TrimPrefix(server, "http://")
	want := http.Header{
		"Te": {"trailers"}, "Authorization": {"Bearer key"}, "Http2-Settings": {"AAMAAABkAAQAAP__"},
		"Forwarded": {"for=10.0.0.1;proto=https"}, "X-Forwarded-For": {"10.0.0.1, 127.0.0.1"}, "X-Forwarded-Host": {"example.com"}, "X-Forwarded-Proto": {"https"},
		"Via": {"1.0 edge", "1.1 " + c.name},
	}
	if !maps.EqualFunc(got.Header, want, slices.Equal) || got.URL.RawQuery != "a=1;b&c=%zz" || got.Host != host {
		t.Errorf("%s, query %s, the server gets\n%v, want\n%v", got.Host, got.URL.RawQuery, got.Header, want)
	}
	if want := (http.Header{"X-Request-Id": {"7"}, "Content-Length": {"0"}}); !maps.EqualFunc(answer.Header, want, slices.Equal) {
		t.Errorf("the client gets %v, want %v", answer.Header, want)
	}
}

// Trailers pass in both directions, and the head of an answer before its body.
func TestTrailers(t *testing.T) {
	seen := make(chan bool)
	server := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Trailer", "X-Sum")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-seen
		io.WriteString(w, "data: [DONE]\n\n")
		w.Header().Set("X-Sum", r.Trailer.Get("X-Sum")+"!")
	})
	c := capturing(t, server)
	r, _ := http.NewRequest("POST", c.url+"/v1/completions", io.MultiReader(strings.NewReader(`{"prompt":"a"}`)))
	r.Trailer = http.Header{"X-Sum": {"5"}}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	close(seen)
	if body, err := io.ReadAll(answer.Body); string(body) != "data: [DONE]\n\n" || err != nil || answer.Trailer.Get("X-Sum") != "5!" {
		t.Errorf("%s, trailer %v, %v", body, answer.Trailer, err)
	}
}

// HTTP/2 is spoken to a server with TLS that offers it.
func TestHTTP2(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			fmt.Fprintf(w, "data: {\"choices\":[{\"text\":\"%s%d\"}]}\n\n", r.Proto, len(body))
			w.(http.Flusher).Flush()
		}
		io.WriteString(w, "data: [DONE]\n\n")
	})
	encrypted := httptest.NewUnstartedServer(handler)
	encrypted.EnableHTTP2 = true
	encrypted.StartTLS()
	defer encrypted.Close()
	c := capturing(t, encrypted.URL, func(c *Config) { c.TLS = &tls.Config{InsecureSkipVerify: true} })
	const requests = 3
	for range requests {
		if text := c.post(t, "/v1/completions", `{"prompt":"a b c"}`); strings.Count(text, `"HTTP/2.018"`) != 3 || !strings.Contains(text, "[DONE]") {
			t.Error(text)
		}
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	if n := c.Counts(); n.Requests != requests || n.Ended[replay.OK] != requests || n.Rows != requests {
		t.Errorf("%+v", n)
	}
}

// A client that waits for 100 Continue gets it once, or the server's refusal without
// having sent the body. Other interim responses pass.
func TestExpectContinue(t *testing.T) {
	server := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Link", "</style.css>")
		w.WriteHeader(http.StatusEarlyHints)
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusContinue) // once more: the proxy may always have sent its own before
		w.Write(body)
	})
	c := capturing(t, server)
	const head = "POST /v1/completions HTTP/1.1\nHost: h\nExpect: 100-continue\nContent-Length: 14\n"
	conn := raw(t, c.url, head+"\n")
	if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("%v, %v", answer, err)
	}
	conn.Close()
	conn = raw(t, c.url, head+"Authorization: a\n\n")
	in := bufio.NewReader(conn)
	var statuses []int
	for {
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		switch statuses = append(statuses, answer.StatusCode); answer.StatusCode {
		case http.StatusContinue:
			io.WriteString(conn, `{"prompt":"a"}`)
			continue
		case http.StatusEarlyHints:
			continue
		}
		if body, err := io.ReadAll(answer.Body); string(body) != `{"prompt":"a"}` || err != nil {
			t.Errorf("%s, %v", body, err)
		}
		break
	}
	if slices.Sort(statuses); !slices.Equal(statuses, []int{100, 103, 200}) {
		t.Errorf("statuses %v", statuses)
	}
	c.stop()
	if n := c.Counts(); n.Ended[replay.HTTPError] != 1 || n.Requests != 2 || n.Rows != 2 {
		t.Errorf("%+v", n)
	}
}

// A server that sends interim responses without end is given up after 64 KiB of them.
func TestFloodOfInterimResponses(t *testing.T) {
	l := listening(t)
	defer l.Close()
	ended := make(chan error)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_, err = http.ReadRequest(bufio.NewReader(conn))
		}
		for err == nil {
			_, err = io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\nLink: "+strings.Repeat("a", 500)+"\r\n\r\n")
		}
		ended <- err
	}()
	c := capturing(t, "http://"+l.Addr().String())
	in := bufio.NewReader(raw(t, c.url, "POST /v1/completions HTTP/1.1\nHost: h\nContent-Length: 2\n\n{}"))
	for passed := 0; ; passed++ {
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode == http.StatusEarlyHints {
			continue
		}
		text, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != http.StatusBadGateway || !bytes.Contains(text, []byte("interim")) || passed < 100 || passed > 130 {
			t.Errorf("%s after %d interim responses: %s", answer.Status, passed, text)
		}
		break
	}
	<-ended
	c.stop()
	if n := c.Counts(); n.Rows != 1 || n.Ended[replay.Connect] != 1 {
		t.Errorf("%+v", n)
	}
}

// Paths pass as they came. An API's path is recognized however it is written, and what is
// not is counted.
func TestPaths(t *testing.T) {
	l := listening(t)
	defer l.Close()
	got := make(chan string)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(conn).ReadString('\n')
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			conn.Close()
			got <- line
		}
	}()
	for _, base := range []string{"", "/base"} {
		c := capturing(t, "http://"+l.Addr().String()+base)
		recorded := int64(0)
		for path, isAPI := range map[string]bool{
			"/v1/chat/completions": true, "//v1/chat/completions": true, "/v1/../v1/chat/completions": true, "/v1/chat//completions": true,
			"/v1/chat/./completions": true, "/v1/%63hat/completions": true, "/v1/chat%2Fcompletions": true, "/v1/chat/completions/": true,
			"/v1/x/%2e%2e/chat/completions": true, "/v1/chat/completions/../../embeddings": false, "/v1/chat/%2563ompletions": false, "/V1/Chat": false,
			"/v1/a|b\"<c>": false, "/v1/%7C|": false, "/a//b/../c/": false, "/": false, "/v1/chat/completions?/../x": true, "/%2e%2e/%00": false,
		} {
			conn := raw(t, c.url, "POST "+path+" HTTP/1.1\nHost: h\nConnection: close\nContent-Length: 2\n\n{}")
			if line := <-got; line != "POST "+base+path+" HTTP/1.1\r\n" {
				t.Errorf("%s%s passes as %s", base, path, line)
			}
			io.Copy(io.Discard, conn)
			n := c.Counts()
			if n.Requests-recorded == 1 != isAPI {
				t.Errorf("%s: recorded: %t", path, !isAPI)
			}
			recorded = n.Requests
		}
		if n := c.Counts(); n.Other+n.Requests != 18 {
			t.Errorf("%+v", n)
		}
	}
}

// An upgrade passes, with what is said after it, and is not a request for an answer. One
// of a request for an answer does not: it could not be recorded.
func TestUpgrade(t *testing.T) {
	server := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			io.WriteString(w, "no upgrade")
			return
		}
		conn, both, _ := http.NewResponseController(w).Hijack()
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		line, _ := both.ReadString('\n')
		io.WriteString(conn, "echo "+line)
	})
	c := capturing(t, server, func(cfg *Config) { cfg.MaxConnections = 1 }) // the first one leaves its place
	const head = " HTTP/1.1\nHost: h\nConnection: Upgrade\nUpgrade: websocket\n"
	conn := raw(t, c.url, "GET /v1/realtime"+head+"\n")
	in := bufio.NewReader(conn)
	if answer, err := http.ReadResponse(in, nil); err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(answer, err)
	}
	io.WriteString(conn, "hello\n")
	if line, err := in.ReadString('\n'); line != "echo hello\n" {
		t.Errorf("%q, %v", line, err)
	}
	conn.Close()
	conn = raw(t, c.url, "POST /v1/completions"+head+"Content-Length: 2\n\n{}")
	if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || answer.StatusCode != http.StatusOK {
		t.Error(answer, err)
	}
	conn.Close()
	c.stop()
	if n := c.Counts(); n.Requests != 1 || n.Other != 1 || n.Rows != 1 {
		t.Errorf("%+v", n)
	}
}

// A proxy whose upstream is itself refuses requests, and does not run out of connections.
func TestLoop(t *testing.T) {
	l := listening(t)
	c := capturingOn(t, l, "http://"+l.Addr().String())
	answer, text, err := c.send("/v1/completions", `{"prompt":"a"}`)
	if err := errors.Join(err, c.stop()); err != nil {
		t.Fatal(err)
	}
	if n := c.Counts(); answer.StatusCode != http.StatusLoopDetected || !strings.Contains(text, "is this proxy") || n.Requests != 1 || n.Ended[replay.HTTPError] != 1 {
		t.Errorf("%s %s, %+v", answer.Status, text, n)
	}
}

// An interrupt lets requests in flight end and takes no others. A second one ends them. A
// client that leaves ends its request.
func TestEnds(t *testing.T) {
	for how, class := range map[string]replay.Class{"interrupt": replay.OK, "second interrupt": replay.Abandoned, "client leaves": replay.Abandoned} {
		t.Run(how, func(t *testing.T) {
			more, over := make(chan bool), make(chan bool)
			server := upstream(t, func(w http.ResponseWriter, r *http.Request) {
				begin(w, r)
				select {
				case <-more:
					io.WriteString(w, "data: [DONE]\n\n")
				case <-r.Context().Done():
				}
				close(over)
			})
			c := capturing(t, server)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			request, _ := http.NewRequestWithContext(ctx, "POST", c.url+"/v1/completions", strings.NewReader(`{"prompt":"a"}`))
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			in := bufio.NewReader(answer.Body)
			in.ReadString('\n')
			if how == "client leaves" {
				leave()
				<-over
			}
			for c.drain(); err == nil; { // until it no longer listens
				var conn net.Conn
				if conn, err = net.Dial("tcp", strings.TrimPrefix(c.url, "http://")); err == nil {
					conn.Close()
				}
			}
			if how == "interrupt" {
				close(more)
			} else {
				c.now()
			}
			rest, err := io.ReadAll(in)
			if whole := class == replay.OK; strings.Contains(string(rest), "[DONE]") != whole || (err == nil) != whole {
				t.Errorf("%q, %v", rest, err)
			}
			if err := c.stop(); err != nil {
				t.Fatal(err)
			}
			if n := c.Counts(); n.Requests != 1 || n.Ended[class] != 1 || n.Rows != 1 || len(c.rows.all) != 1 {
				t.Errorf("%+v", n)
			}
		})
	}
}
