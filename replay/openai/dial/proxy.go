package dial

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/proxy"

	"moontide/replay/secret"
)

// maxConnectHead limits the answer of a proxy to CONNECT, in bytes.
const maxConnectHead = 64 << 10

// Proxy opens connections through a proxy: an HTTP proxy (schemes http and https) or
// a SOCKS5 proxy (socks5 and socks5h, which both let the proxy look up names).
type Proxy struct {
	URL *url.URL
	// Tunnel asks an HTTP proxy for a connection to the address (CONNECT). Otherwise
	// the connection is one to the proxy, for requests in absolute form.
	Tunnel bool
	TLS    *tls.Config // for https proxies; ServerName is set
	Dial   Func        // opens connections to the proxy; nil means that of a net.Dialer
}

// Check returns an error if the URL is not that of a proxy.
func (p *Proxy) Check() error {
	switch p.URL.Scheme {
	case "http", "https", "socks5", "socks5h":
	default:
		return fmt.Errorf("proxy %s is not http, https or socks5", p)
	}
	if p.URL.Hostname() == "" {
		return fmt.Errorf("proxy %s has no host", p)
	}
	return nil
}

// String returns the URL of the proxy with its credentials masked.
func (p *Proxy) String() string { return secret.Place(p.URL) }

// SOCKS reports whether it is a SOCKS proxy.
func (p *Proxy) SOCKS() bool { return strings.HasPrefix(p.URL.Scheme, "socks5") }

// Authorization returns the value of Proxy-Authorization, "" without credentials.
func (p *Proxy) Authorization() string {
	if p.URL.User == nil {
		return ""
	}
	password, _ := p.URL.User.Password()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(p.URL.User.Username()+":"+password))
}

// DialContext opens a connection through the proxy.
func (p *Proxy) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dial := p.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, "tcp", p.address())
	if err != nil {
		return nil, fmt.Errorf("connecting to the proxy %s: %w", p, err)
	}
	through, err := p.negotiate(ctx, conn, network, address)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("proxy %s: %w", p, err)
	}
	return through, nil
}

// address returns host:port of the proxy.
func (p *Proxy) address() string {
	port := p.URL.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[p.URL.Scheme]
	}
	return net.JoinHostPort(p.URL.Hostname(), port)
}

// negotiate makes a connection to the proxy one to the address.
func (p *Proxy) negotiate(ctx context.Context, conn net.Conn, network, address string) (net.Conn, error) {
	if p.SOCKS() {
		return conn, p.socks(ctx, conn, network, address)
	}
	if p.URL.Scheme == "https" {
		config := p.TLS.Clone()
		if config == nil {
			config = new(tls.Config)
		}
		config.ServerName = p.URL.Hostname()
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		conn = secure
	}
	if p.Tunnel {
		return conn, p.connect(ctx, conn, address)
	}
	return conn, nil
}

// connect sends CONNECT and reads its answer.
func (p *Proxy) connect(ctx context.Context, conn net.Conn, address string) error {
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	err := p.exchange(conn, address)
	if !stop() && ctx.Err() != nil {
		return ctx.Err()
	}
	conn.SetDeadline(time.Time{})
	return err
}

func (p *Proxy) exchange(conn net.Conn, address string) error {
	request := "CONNECT " + address + " HTTP/1.1\r\nHost: " + address + "\r\nUser-Agent: moontide\r\n"
	if credentials := p.Authorization(); credentials != "" {
		request += "Proxy-Authorization: " + credentials + "\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		return err
	}
	in := bufio.NewReader(io.LimitReader(conn, maxConnectHead))
	reader := textproto.NewReader(in)
	line, err := reader.ReadLine()
	if err == nil {
		_, err = reader.ReadMIMEHeader()
	}
	_, status, isHTTP := strings.Cut(line, " ")
	_, malformed := errors.AsType[textproto.ProtocolError](err) // it quotes the answer
	switch {
	case err != nil && err != io.EOF && !malformed:
		return fmt.Errorf("reading the answer to CONNECT: %w", err)
	case !isHTTP || !strings.HasPrefix(line, "HTTP/1."):
		return errors.New("the answer to CONNECT is not HTTP: is this the port of an HTTP proxy?")
	case strings.HasPrefix(status, "407"):
		return fmt.Errorf("refused CONNECT %s with %q: put the user and password into the proxy's URL", address, status)
	case !strings.HasPrefix(status, "2"):
		return fmt.Errorf("refused CONNECT %s with %q", address, status)
	case err != nil || in.Buffered() > 0:
		return fmt.Errorf("the answer to CONNECT %s is malformed", address)
	}
	return nil
}

// socks lets a SOCKS5 proxy connect to an address. The connection stays the plain one
// to the proxy, so that its bytes have the kernel's timestamps.
func (p *Proxy) socks(ctx context.Context, conn net.Conn, network, address string) error {
	var auth *proxy.Auth
	if p.URL.User != nil {
		password, _ := p.URL.User.Password()
		auth = &proxy.Auth{User: p.URL.User.Username(), Password: password}
	}
	dialer, err := proxy.SOCKS5("tcp", p.address(), auth, nil)
	if err != nil {
		return err
	}
	negotiator, ok := dialer.(interface {
		DialWithConn(ctx context.Context, c net.Conn, network, address string) (net.Addr, error)
	})
	if !ok {
		return fmt.Errorf("%T has no DialWithConn", dialer)
	}
	_, err = negotiator.DialWithConn(ctx, conn, network, address)
	return err
}
