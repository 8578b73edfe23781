package dial

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
)

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
		"cut":            {"HTTP/1.1 200 OK\r\nA", "reading the answer to CONNECT: malformed"},
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
