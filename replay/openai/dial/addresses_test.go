package dial

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// network is a network whose addresses answer after a while, or refuse if that is
// below 0.
type network struct {
	delay  map[string]time.Duration
	found  []string // addresses of every name
	mu     sync.Mutex
	dialed []string
	open   int
	looked int
}

func (n *network) lookup(context.Context, string, string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.looked++
	var all []netip.Addr
	for _, text := range n.found {
		all = append(all, netip.MustParseAddr(text))
	}
	if all == nil {
		return nil, errors.New("no such host")
	}
	return all, nil
}

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	ip, _, _ := net.SplitHostPort(address)
	n.mu.Lock()
	n.dialed = append(n.dialed, ip)
	delay := n.delay[ip]
	n.mu.Unlock()
	if delay < 0 {
		return nil, errors.New(ip + " refuses")
	}
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open++
	return &peer{n: n, address: address}, nil
}

// take returns the addresses that were dialed since the last call.
func (n *network) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	dialed := strings.Join(n.dialed, " ")
	n.dialed = nil
	return dialed
}

func (n *network) addresses() *Addresses { return &Addresses{Lookup: n.lookup, Dial: n.dial} }

type peer struct {
	net.Conn
	n       *network
	address string
}

func (p *peer) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(p.address))
}

func (p *peer) Close() error {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	p.n.open--
	return nil
}

func open(t *testing.T, a *Addresses, host string) string {
	t.Helper()
	conn, err := a.DialContext(context.Background(), "tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ip, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
	return ip
}

// Connections take the addresses of a service in turn, whatever order the resolver
// gives them, and of one family only.
func TestInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{found: []string{"::ffff:10.0.0.3", "10.0.0.1", "fd00::1", "10.0.0.2", "fd00::2"}}
		a := n.addresses()
		if got := a.Spread(); got != 0 {
			t.Errorf("spread over %d before the first connection", got)
		}
		taken := map[string]int{}
		for i := range 31 {
			taken[open(t, a, "pods:80")]++
			if i%3 == 0 {
				slices.Reverse(n.found)
				time.Sleep(lookupAge)
			}
		}
		if len(taken) != 3 || taken["10.0.0.1"] < 10 || taken["10.0.0.2"] < 10 || taken["10.0.0.3"] < 10 || a.Spread() != 3 {
			t.Errorf("%v of %d", taken, a.Spread())
		}
	})
}

// A silent address delays one connection a minute, not each in its turn, and takes its
// turns again once it answers.
func TestSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{found: []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, delay: map[string]time.Duration{"10.0.0.1": time.Hour}}
		a := n.addresses()
		for minute := range 3 {
			began := time.Now()
			for range 30 {
				if got := open(t, a, "pods:80"); got == "10.0.0.1" {
					t.Errorf("connected to %s", got)
				}
			}
			if took := time.Since(began); took != attemptTime || a.Spread() != 2 {
				t.Errorf("minute %d: 30 connections took %v, spread over %d", minute, took, a.Spread())
			}
			time.Sleep(silence)
		}
		n.delay["10.0.0.1"] = 0
		taken := map[string]int{}
		for range 30 {
			taken[open(t, a, "pods:80")]++
		}
		if taken["10.0.0.1"] != 10 || a.Spread() != 3 {
			t.Errorf("%v of %d", taken, a.Spread())
		}
	})
}

// A name is looked up at most once in a while, and again after a failure.
func TestLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{found: []string{"10.0.0.1"}, delay: map[string]time.Duration{"10.0.0.1": 0}}
		a := n.addresses()
		for range 100 {
			open(t, a, "pods:80")
		}
		if n.looked != 1 {
			t.Errorf("%d look-ups", n.looked)
		}
		n.delay["10.0.0.1"] = -1
		if _, err := a.DialContext(context.Background(), "tcp", "pods:80"); err == nil || err.Error() != "10.0.0.1 refuses" {
			t.Errorf("error %v", err)
		}
		n.found = []string{"10.0.0.9"}
		if got := open(t, a, "pods:80"); got != "10.0.0.9" || n.looked != 2 {
			t.Errorf("connected to %s after %d look-ups", got, n.looked)
		}
		n.found = nil
		time.Sleep(lookupAge)
		if _, err := a.DialContext(context.Background(), "tcp", "pods:80"); err == nil || err.Error() != "dial tcp: no such host" {
			t.Errorf("error %v", err)
		}
	})
}

// All addresses are tried before a connection fails: the next one when one failed or
// was silent for too long.
func TestTryAll(t *testing.T) {
	const never = time.Hour
	for name, tc := range map[string]struct {
		delays []time.Duration // of fd00::1, 10.0.0.1, 10.0.0.2
		want   string
		after  time.Duration
		dialed string
	}{
		"first":                      {[]time.Duration{0, 0, 0}, "fd00::1", 0, "fd00::1"},
		"one refuses":                {[]time.Duration{-1, time.Second / 10, 0}, "10.0.0.1", time.Second / 10, "fd00::1 10.0.0.1"},
		"one is silent":              {[]time.Duration{never, 0, 0}, "10.0.0.1", attemptTime, "fd00::1 10.0.0.1"},
		"two are silent":             {[]time.Duration{never, never, 0}, "10.0.0.2", 2 * attemptTime, "fd00::1 10.0.0.1 10.0.0.2"},
		"the last may take its time": {[]time.Duration{-1, -1, 9 * attemptTime}, "10.0.0.2", 9 * attemptTime, "fd00::1 10.0.0.1 10.0.0.2"},
		"all refuse":                 {[]time.Duration{-1, -1, -1}, "none of 3 addresses answers: fd00::1 refuses", 0, "fd00::1 10.0.0.1 10.0.0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &network{found: []string{"fd00::1", "10.0.0.1", "10.0.0.2"}, delay: map[string]time.Duration{}}
				for i, ip := range n.found {
					n.delay[ip] = tc.delays[i]
				}
				began := time.Now()
				conn, err := n.addresses().DialContext(context.Background(), "tcp", "host:80")
				took := time.Since(began)
				got := ""
				if err != nil {
					got = err.Error()
				} else {
					got, _, _ = net.SplitHostPort(conn.RemoteAddr().String())
					conn.Close()
				}
				synctest.Wait()
				if tc.want != "" && got != tc.want || took != tc.after || n.take() != tc.dialed || n.open != 0 {
					t.Errorf("%s after %v, %d connections left open", got, took, n.open)
				}
			})
		})
	}
}

// A canceled dial ends at once, and every attempt with it.
func TestCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{found: []string{"10.0.0.1", "10.0.0.2"}, delay: map[string]time.Duration{"10.0.0.1": time.Hour, "10.0.0.2": time.Hour}}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := n.addresses().DialContext(ctx, "tcp", "host:80")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// An address is dialed as it is.
func TestNoName(t *testing.T) {
	n := &network{}
	a := n.addresses()
	for _, address := range []string{"10.0.0.1:80", "[fd00::1]:80"} {
		ip, _, _ := net.SplitHostPort(address)
		if got := open(t, a, address); got != ip || n.looked != 0 || a.Spread() != 0 {
			t.Errorf("%s: connected to %s after %d look-ups", address, got, n.looked)
		}
	}
}

// listen serves each connection with a script and returns the address.
func listen(t *testing.T, network, address string, script func(net.Conn)) string {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			script(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-ended })
	return ln.Addr().String()
}

// readHead reads a request up to its blank line.
func readHead(c net.Conn) string {
	var head strings.Builder
	for in := bufio.NewReaderSize(c, 16); !strings.HasSuffix(head.String(), "\r\n\r\n"); {
		line, err := in.ReadString('\n')
		if head.WriteString(line); err != nil {
			break
		}
	}
	return head.String()
}

func TestConnect(t *testing.T) {
	const want = "CONNECT host:443 HTTP/1.1\r\nHost: host:443\r\nUser-Agent: moontide\r\nProxy-Authorization: Basic bWU6aHVzaCBodXNo\r\n\r\n"
	for name, tc := range map[string]struct{ answer, want string }{
		"tunnel":         {"HTTP/1.1 200 Connection established\r\nA: b\r\n\r\n", ""},
		"old":            {"HTTP/1.0 200 OK\r\n\r\n", ""},
		"no credentials": {"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", `refused CONNECT host:443 with "407 Proxy Authentication Required": put the user and password into the proxy's URL`},
		"refused":        {"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", `refused CONNECT host:443 with "403 Forbidden"`},
		"hangs up":       {"", "is this the port of an HTTP proxy?"},
		"not HTTP":       {"SSH-2.0-OpenSSH_9\r\n\r\n", "is this the port of an HTTP proxy?"},
		"cut":            {"HTTP/1.1 200 OK\r\nA", "the answer to CONNECT host:443 is malformed"},
		"early bytes":    {"HTTP/1.1 200 OK\r\n\r\nearly", "the answer to CONNECT host:443 is malformed"},
		"endless":        {"HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 20_000), "the answer to CONNECT"},
	} {
		t.Run(name, func(t *testing.T) {
			got := make(chan string, 1)
			address := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
				got <- readHead(c)
				io.WriteString(c, tc.answer)
				if tc.want == "" {
					io.Copy(c, c)
				}
			})
			p := &Proxy{URL: &url.URL{Scheme: "http", Host: address, User: url.UserPassword("me", "hush hush")}, Tunnel: true}
			conn, err := p.DialContext(context.Background(), "tcp", "host:443")
			if said := <-got; said != want {
				t.Errorf("the proxy was asked %q", said)
			}
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "proxy http://***@"+address) || strings.Contains(err.Error(), "hush") {
					t.Errorf("error %v, want %q", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			io.WriteString(conn, "tide")
			echo := make([]byte, 4)
			if _, err := io.ReadFull(conn, echo); err != nil || string(echo) != "tide" {
				t.Errorf("%q, %v", echo, err)
			}
		})
	}
}

// A SOCKS proxy gets the name of the host, and the connection stays the plain one.
func TestSOCKS(t *testing.T) {
	got := make(chan string, 1)
	address := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		buf := make([]byte, 64)
		read := func(n int) string { io.ReadFull(c, buf[:n]); return string(buf[:n]) }
		said := read(4) // version, two methods: none, password
		c.Write([]byte{5, 2})
		said += read(2 + 2 + 1 + 4) // version 1, user, password
		c.Write([]byte{1, 0})
		got <- said + read(4+1+4+2)
		c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		io.Copy(io.Discard, c)
	})
	p := &Proxy{URL: &url.URL{Scheme: "socks5h", Host: address, User: url.UserPassword("me", "hush")}}
	conn, err := p.DialContext(context.Background(), "tcp", "host:443")
	if err != nil {
		t.Fatal(err)
	}
	if _, plain := conn.(*net.TCPConn); !plain {
		t.Errorf("the connection is a %T", conn)
	}
	conn.Close()
	if said := <-got; said != "\x05\x02\x00\x02\x01\x02me\x04hush\x05\x01\x00\x03\x04host\x01\xbb" {
		t.Errorf("the proxy was asked %q", said)
	}
}
