package openai

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"moontide/replay"
	"moontide/replay/openai/http1"
)

func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	busy := answerOf("429 Too Many Requests", "text/plain", "slow down")
	whole := streamed + inChunk(complete) + lastChunk
	for name, tc := range map[string]struct {
		first       string // answer
		connections int    // for two requests
	}{
		"read to its end":      {whole, 1},
		"a trailer":            {streamed + inChunk(complete) + "0\r\nA: b\r\n\r\n", 1},
		"content length":       {answerOf("200 OK", "text/event-stream", complete), 1},
		"an error, read":       {busy, 1},
		"an error that closes": {"HTTP/1.1 429 No\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno", 2},
		"cut":                  {streamed + inChunk(tide), 2},
		"connection: close":    {"HTTP/1.1 200 OK\r\nConnection: close\r\n" + whole[len("HTTP/1.1 200 OK\r\n"):], 2},
		"an error in a stream": {streamed + inChunk(`data: {"error":"no"}`+"\n\n") + lastChunk, 2},
		"more than asked for":  {whole + "HTTP/1.1 200 OK\r\n", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := func(p *peer) {
				p.request()
				p.say(tc.first)
				if name != "cut" {
					wellBehaved(p)
				}
			}
			s := serve(t, answers, wellBehaved)
			c := client(t, s.url)
			send(t, c)
			wantOK(t, send(t, c), 2)
			if got := s.connections(); got != tc.connections {
				t.Errorf("%d connections, want %d", got, tc.connections)
			}
		})
	}
}

// awaitEnd waits until the client's kernel knows that the server hung up.
func awaitEnd(c *http1.Conn) {
	for c.Alive() {
		time.Sleep(time.Millisecond)
	}
}

// A connection that was opened in vain is used by another request, or closed if
// each has its own.
func TestDiscarded(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]int{Pooled: 1, Fresh: 2} {
		s := serve(t, wellBehaved)
		c := client(t, s.url, func(cfg *Config) { cfg.Connections = kind })
		made := prepare(t, c, row)
		made.Discard() // nothing is open yet
		made.Open(context.Background())
		made.Discard()
		wantOK(t, send(t, c), 2)
		if n := s.connections(); n != want {
			t.Errorf("%s: %d connections, want %d", kind, n, want)
		}
	}
}

// Start sends before anybody waits for the answer, on a connection that was opened
// ahead or an idle one.
func TestStart(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	s := serve(t, always(func(p *peer, r *http.Request, body string) {
		got <- body
		p.say(streamed+inChunk(tide), inChunk(tide+finish+tokens)+inChunk(theEnd)+lastChunk)
	}))
	c := client(t, s.url)
	if c.loop == nil {
		t.Skip("on this system to send is to wait")
	}
	opened, kept := prepare(t, c, row), prepare(t, c, row)
	for _, made := range []*call{opened, kept} {
		if made == opened {
			made.Open(context.Background())
		}
		body, before := string(made.body), time.Now()
		made.Start()
		if said := <-got; said != body {
			t.Errorf("the server got %q, want %q", said, body)
		}
		after := time.Now()
		o := made.Send(context.Background())
		wantOK(t, o, 2)
		if o.Sent.Before(before) || o.Sent.After(after) {
			t.Errorf("sent %v, started from %v to %v", o.Sent, before, after)
		}
	}
	if n := s.connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// Without a ready connection Start does nothing and Send everything.
func TestStartWithoutAConnection(t *testing.T) {
	t.Parallel()
	for _, edit := range readers {
		closed := make(chan bool)
		s := serve(t, func(p *peer) { p.Close(); close(closed) }, wellBehaved)
		c := edit(client(t, s.url))
		made := prepare(t, c, row)
		made.Open(context.Background())
		<-closed
		awaitEnd(made.opened)
		made.Start()
		if made.sent != nil {
			t.Error("started on a connection that the server has closed")
		}
		wantOK(t, made.Send(context.Background()), 2)

		cold := edit(client(t, serve(t, wellBehaved).url))
		made = prepare(t, cold, row)
		made.Start()
		wantOK(t, made.Send(context.Background()), 2)
	}
}

// A request can be canceled at any time, and its connection is closed.
func TestCancel(t *testing.T) {
	t.Parallel()
	says := func(first string) func(chan<- bool) func(*peer) {
		return func(at chan<- bool) func(*peer) {
			return once(func(p *peer) { p.say(first); close(at); p.hold() })
		}
	}
	for name, script := range map[string]func(at chan<- bool) func(*peer){
		"opened":        func(at chan<- bool) func(*peer) { return func(p *peer) { close(at); p.hold() } },
		"shaking hands": func(at chan<- bool) func(*peer) { return func(p *peer) { p.in.ReadByte(); close(at); p.hold() } },
		"started":       says(""),
		"waiting":       says(""),
		"streaming":     says(streamed + inChunk(tide)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, edit := range readers {
				at := make(chan bool)
				s := serve(t, script(at))
				url := s.url
				if name == "shaking hands" {
					url = "https" + url[len("http"):]
				}
				made := prepare(t, edit(client(t, url)), row)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if name == "opened" || name == "started" {
					made.Open(context.Background())
				}
				if name == "opened" {
					<-at
					cancel()
				}
				if name == "started" {
					made.Start()
				}
				go func() { <-at; cancel() }()
				o := made.Send(ctx)
				wantClass(t, o, replay.Canceled, "canceled by the user")
				if sent := name != "opened" && name != "shaking hands"; o.Sent.IsZero() == sent {
					t.Errorf("sent %v", o.Sent)
				}
				s.wait()
			}
		})
	}
}

func TestCancelWhileDialing(t *testing.T) {
	t.Parallel()
	c := client(t, serve(t, wellBehaved).url)
	ctx, cancel := context.WithCancel(context.Background())
	c.servers[0].host.DialContext = func(dialing context.Context, _, _ string) (net.Conn, error) {
		cancel()
		<-dialing.Done()
		return nil, dialing.Err()
	}
	o := prepare(t, c, row).Send(ctx)
	wantClass(t, o, replay.Canceled, "canceled by the user")
	if !o.Sent.IsZero() {
		t.Error("sent without a connection")
	}
	// Canceling a request does not affect others.
	c.servers[0].host.DialContext = nil
	wantOK(t, send(t, c), 2)
}

func TestDialingTakesFromTheTimeout(t *testing.T) {
	t.Parallel()
	c := client(t, serve(t, wellBehaved).url, soon)
	c.servers[0].host.DialContext = func(dialing context.Context, _, _ string) (net.Conn, error) {
		<-dialing.Done()
		return nil, dialing.Err()
	}
	wantClass(t, send(t, c), replay.Timeout, "no complete answer within 50ms")
}

// The TLS handshake is not part of the latency, like dialing.
func TestSentAfterTheHandshake(t *testing.T) {
	t.Parallel()
	var hello time.Time
	s := answersOverTLS(t, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		hello = time.Now()
		return nil, nil
	}})
	trusted := x509.NewCertPool()
	trusted.AddCert(s.Certificate())
	c := client(t, s.URL, func(cfg *Config) { cfg.RootCAs = trusted })
	o := send(t, c)
	wantOK(t, o, 2)
	if !o.Sent.After(hello) {
		t.Errorf("sent %v before the server had shaken hands", hello.Sub(o.Sent))
	}
	wantOK(t, send(t, c), 2)
	if n := c.servers[0].host.IdleConns(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// proxied lets a client use a proxy with credentials.
func proxied(address string) func(*Config) {
	proxy := &url.URL{Scheme: "http", Host: strings.TrimPrefix(address, "http://"), User: url.UserPassword("me", "hush-hush")}
	return func(cfg *Config) { cfg.Proxy = func(*url.URL) (*url.URL, error) { return proxy, nil } }
}

// A request for http goes to the proxy in absolute form; the name of the server is
// not looked up. Answers keep the kernel's timestamps.
func TestForwardProxy(t *testing.T) {
	t.Parallel()
	got := make(chan *http.Request, 9)
	proxy := serve(t, always(func(p *peer, r *http.Request, body string) {
		got <- r
		if r.Method == http.MethodGet {
			p.say(listed("m"))
			return
		}
		usual(p, r, body)
	}))
	c := client(t, "http://gpu.example:8000/llm?a=b", proxied(proxy.url))
	notes, err := c.Probe(context.Background())
	if want := "requests to gpu.example:8000 go through the proxy http://***@" + strings.TrimPrefix(proxy.url, "http://"); err != nil || !slices.Contains(notes, want) {
		t.Fatalf("notes %q, %v", notes, err)
	}
	o := send(t, c)
	wantOK(t, o, 2)
	if o.Stamps != c.Stamps() {
		t.Errorf("stamps of %v", o.Stamps)
	}
	for i, want := range []string{"models", "completions", "completions", "completions"} {
		r := <-got
		if r.RequestURI != "http://gpu.example:8000/llm/v1/"+want+"?a=b" || r.Host != "gpu.example:8000" || r.Header.Get("Proxy-Authorization") != "Basic bWU6aHVzaC1odXNo" {
			t.Errorf("request %d: %s of %s, %v", i, r.RequestURI, r.Host, r.Header)
		}
	}
}

// Errors name the proxy and not its credentials.
func TestProxyErrors(t *testing.T) {
	t.Parallel()
	says := func(text string) string {
		return serve(t, func(p *peer) { p.request(); p.say(text) }).url
	}
	for name, tc := range map[string]struct{ target, proxy, want string }{
		"refused":            {"http://gpu.example", nobody, "connecting to the proxy http://***@127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused"},
		"refused, https":     {"https://gpu.example", nobody, "connecting to the proxy http://***@127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused"},
		"bad gateway":        {"http://gpu.example", says(answerOf("502 Bad Gateway", "text/plain", "no hush-hush of bWU6aHVzaC1odXNo")), "HTTP status 502: no *** of ***"},
		"credentials":        {"http://gpu.example", says(answerOf("407 No", "text/plain", "who?")), "HTTP status 407: who?: put the user and password into the proxy's URL"},
		"credentials, https": {"https://gpu.example", says("HTTP/1.1 407 No\r\n\r\n"), `refused CONNECT gpu.example:443 with "407 No": put the user and password into the proxy's URL`},
	} {
		c := client(t, tc.target, proxied(tc.proxy))
		o := send(t, c)
		_, err := client(t, tc.target, proxied(tc.proxy), func(cfg *Config) { cfg.Model = "" }).Probe(context.Background())
		if runtime.GOOS == "windows" { // it words system errors differently
			tc.want, _, _ = strings.Cut(tc.want, ": dial")
		}
		if err == nil || !strings.Contains(err.Error(), "through the proxy http://***@") || !strings.Contains(err.Error(), tc.want) || !strings.Contains(o.Error, tc.want) {
			t.Errorf("%s: %q, %v", name, o.Error, err)
		}
		if err != nil && strings.Contains(o.Error+err.Error(), "hush") {
			t.Errorf("%s: secret in %q, %v", name, o.Error, err)
		}
	}
	_, err := New(Config{URL: "http://gpu.example", Proxy: func(*url.URL) (*url.URL, error) { return url.Parse("ftp://me:hush@h") }})
	if err == nil || err.Error() != "proxy ftp://***@h is not http, https or socks5" {
		t.Errorf("error %v", err)
	}
}

// answersOverTLS is an https server.
func answersOverTLS(t *testing.T, settings *tls.Config) *httptest.Server {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, complete)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = settings
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// An https server is reached through a tunnel, and its certificate is checked
// unless it is said not to be.
func TestTunnel(t *testing.T) {
	t.Parallel()
	s := answersOverTLS(t, &tls.Config{})
	asked := make(chan string, 9)
	proxy := serve(t, func(p *peer) {
		r, _ := p.request()
		if r == nil {
			return
		}
		asked <- r.Method + " " + r.RequestURI
		to, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			return
		}
		p.say("HTTP/1.1 200 OK\r\n\r\n")
		over := make(chan bool)
		go func() { io.Copy(to, p.in); to.Close(); close(over) }()
		io.Copy(p, to)
		p.Close()
		<-over
	})
	wantClass(t, send(t, client(t, "https://gpu.example", proxied(proxy.url))), replay.Connect, "certificate")
	c := client(t, "https://gpu.example", proxied(proxy.url), func(cfg *Config) { cfg.Insecure = true })
	wantOK(t, send(t, c), 2)
	if notes := c.networkNotes(); !slices.Contains(notes, "the certificate of gpu.example is not checked") || len(notes) != 2 {
		t.Errorf("notes %q", notes)
	}
	for range 2 {
		if got := <-asked; got != "CONNECT gpu.example:443" {
			t.Errorf("the proxy was asked %s", got)
		}
	}
}

// A note tells over how many addresses connections are spread.
func TestSpreadNote(t *testing.T) {
	t.Parallel()
	s := serve(t, wellBehaved)
	c := client(t, "http://pods.example:80", func(cfg *Config) { cfg.Connections = Fresh })
	a := &c.servers[0].addresses
	a.Lookup = func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::1")}, nil
	}
	dialed := map[string]int{}
	a.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialed[address]++
		return new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(s.url, "http://"))
	}
	for range 4 {
		wantOK(t, send(t, c), 2)
	}
	if dialed["10.0.0.1:80"] != 2 || dialed["10.0.0.2:80"] != 2 {
		t.Errorf("dialed %v", dialed)
	}
	if notes := c.networkNotes(); !slices.Equal(notes, []string{"pods.example has 2 addresses: new connections take them in turn, a reused one keeps its own"}) {
		t.Errorf("notes %q", notes)
	}
}

// An https URL of a server without TLS is named as the cause.
func TestServerWithoutTLS(t *testing.T) {
	t.Parallel()
	s := serve(t, func(p *peer) { p.say(answerOf("400 Bad Request", "text/plain", "not HTTP")); p.hold() })
	o := send(t, client(t, strings.Replace(s.url, "http:", "https:", 1)))
	wantClass(t, o, replay.Connect, "the server does not speak TLS, use http://")
}

// A server that takes HTTP/2 only is named as the cause, with what to do.
func TestServerWithoutHTTP1(t *testing.T) {
	t.Parallel()
	known := answersOverTLS(t, &tls.Config{})
	s := serve(t, func(p *peer) {
		tls.Server(p.Conn, &tls.Config{Certificates: known.TLS.Certificates, NextProtos: []string{"h2-"}}).Handshake() // servers in Go do not refuse if it is h2
	})
	o := send(t, client(t, strings.Replace(s.url, "http:", "https:", 1)))
	wantClass(t, o, replay.Connect, "takes HTTP/2 only, put a proxy such as nginx before it")
}
