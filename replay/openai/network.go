package openai

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"moontide/replay/openai/dial"
	"moontide/replay/openai/http2"
)

// TLSConfig returns the configuration of TLS connections to the servers.
func (cfg *Config) TLSConfig() *tls.Config {
	return &tls.Config{RootCAs: cfg.RootCAs, Certificates: cfg.Certificates, InsecureSkipVerify: cfg.Insecure}
}

// connect sets how connections to the server are opened.
func (s *server) connect(cfg *Config) error {
	if err := s.setDial(cfg); err != nil {
		return err
	}
	if cfg.HTTP2 {
		s.useHTTP2()
	}
	return nil
}

func (s *server) setDial(cfg *Config) error {
	secure := s.base.scheme == "https"
	s.host.Address, s.host.NoReuse = fasthttp.AddMissingPort(s.base.host, secure), cfg.Connections == Fresh
	if secure {
		s.host.TLS = cfg.TLSConfig()
		s.host.TLS.ServerName, s.host.TLS.ClientSessionCache = s.base.hostname(), tls.NewLRUClientSessionCache(0)
		s.host.TLS.NextProtos = []string{"http/1.1"}
	}
	if cfg.UnixSocket != "" {
		s.host.DialContext = dial.Unix(cfg.UnixSocket)
		return nil
	}
	s.addresses = new(dial.Addresses)
	s.host.DialContext = s.addresses.DialContext
	if cfg.Proxy == nil {
		return nil
	}
	u, err := cfg.Proxy(&url.URL{Scheme: s.base.scheme, Host: s.base.host})
	if u == nil || err != nil {
		return err
	}
	s.proxy = &dial.Proxy{URL: u, Tunnel: secure || cfg.HTTP2, TLS: cfg.TLSConfig(), Dial: s.addresses.DialContext}
	s.host.DialContext = s.proxy.DialContext
	return s.proxy.Check()
}

// useHTTP2 sends all further requests over HTTP/2.
func (s *server) useHTTP2() {
	secure := s.host.TLS
	if secure != nil {
		secure = secure.Clone()
		secure.NextProtos = nil // the transport has its own
	}
	s.http2 = http2.New(http2.Config{Address: s.host.Address, TLS: secure, NoReuse: s.host.NoReuse, DialContext: s.host.DialContext})
	s.host.Open = s.http2.Open
}

// settleProtocols opens a connection to each https server, which the first request
// will use, and changes to HTTP/2 where HTTP/1.1 is refused.
func (c *Client) settleProtocols(ctx context.Context) {
	for _, s := range c.servers {
		if s.host.TLS == nil || s.http2 != nil {
			continue
		}
		conn, err := s.host.Conn(ctx, time.Now().Add(min(probeTimeout, c.cfg.Timeout)))
		var refused *net.OpError
		switch {
		case errors.As(err, &refused) && refused.Op == "remote error" && s.choosesHTTP2(ctx):
			s.useHTTP2()
		case err != nil: // the first request will report it
		case conn.Protocol() == "" && s.choosesHTTP2(ctx):
			conn.Close()
			s.useHTTP2()
		default:
			s.host.Put(conn)
		}
	}
}

// choosesHTTP2 reports whether a server chooses HTTP/2. Servers in Go that have nothing
// else do not refuse HTTP/1.1, they just do not choose it.
func (s *server) choosesHTTP2(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := s.host.DialContext(ctx, "tcp", s.host.Address)
	if err != nil {
		return false
	}
	defer conn.Close()
	config := s.host.TLS.Clone()
	config.NextProtos = []string{"h2"}
	secure := tls.Client(conn, config)
	return secure.HandshakeContext(ctx) == nil && secure.ConnectionState().NegotiatedProtocol == "h2"
}

// target returns what a request line has for a path: to an HTTP proxy that sees the
// request, the whole URL.
func (s *server) target(path string) string {
	path = s.base.target(path)
	if s.forwarded() {
		path = "http://" + s.base.host + path
	}
	return path
}

// forwarded reports whether a proxy reads the requests and sends them on.
func (s *server) forwarded() bool { return s.proxy != nil && !s.proxy.Tunnel && !s.proxy.SOCKS() }

// shown returns the URL of a path for messages, with the proxy on the way to it.
func (s *server) shown(path string) string {
	if s.proxy != nil {
		return s.base.shown(path) + " through the proxy " + s.proxy.String()
	}
	return s.base.shown(path)
}

// networkNotes tells what is between the client and the servers. They are complete
// once each server has been probed.
func (c *Client) networkNotes() (notes []string) {
	if c.cfg.UnixSocket != "" {
		notes = append(notes, "requests go through the Unix socket "+oneLine(c.cfg.UnixSocket))
	}
	for _, s := range c.servers {
		if s.proxy != nil {
			notes = append(notes, fmt.Sprintf("requests to %s go through the proxy %s", s.base.host, s.proxy))
		} else if s.addresses != nil && s.addresses.Spread() > 1 {
			notes = append(notes, fmt.Sprintf("%s has %d addresses: new connections take them in turn, a reused one keeps its own", s.base.hostname(), s.addresses.Spread()))
		}
		if s.http2 != nil {
			notes = append(notes, fmt.Sprintf("requests to %s go over HTTP/2: the client timestamps their tokens", s.base.host))
		}
		if s.host.TLS != nil && c.cfg.Insecure {
			notes = append(notes, fmt.Sprintf("the certificate of %s is not checked", s.base.host))
		}
	}
	if c.compressed.Load() {
		notes = append(notes, "answers are compressed although uncompressed ones were asked for: the tokens of a compressed block share its arrival time")
	}
	slices.Sort(notes) // several URLs may have the same host
	return slices.Compact(notes)
}
