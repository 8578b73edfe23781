package openai

import (
	"context"
	"crypto/tls"
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

	"moontide/replay"
)

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

func TestClientCertificate(t *testing.T) {
	t.Parallel()
	s := answersOverTLS(t, &tls.Config{ClientAuth: tls.RequireAnyClientCert})
	insecure := func(cfg *Config) { cfg.Insecure = true }
	wantClass(t, send(t, client(t, s.URL, insecure)), replay.Connect, "")
	wantOK(t, send(t, client(t, s.URL, insecure, func(cfg *Config) { cfg.Certificates = s.TLS.Certificates })), 2)
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
