package openai

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/valyala/fasthttp"

	"moontide/replay/openai/dial"
	"moontide/replay/openai/http1"
	"moontide/replay/openai/poll"
	"moontide/trace"
)

// server is one of a client's servers.
type server struct {
	index int // in Client.servers
	base  *address
	head  fasthttp.RequestHeader // of every POST
	host  http1.Host

	addresses dial.Addresses
	proxy     *dial.Proxy // may be nil
}

func newServer(cfg Config, index int, base *address) (*server, error) {
	s := &server{index: index, base: base}
	if err := s.connect(&cfg); err != nil {
		return nil, err
	}
	s.head.SetMethod(fasthttp.MethodPost)
	s.head.SetHost(base.host)
	s.head.SetContentType("application/json")
	s.head.SetUserAgent("moontide")
	s.head.Set("Accept", "text/event-stream")
	s.head.Set("Accept-Encoding", "identity") // without it, any encoding is allowed
	if header := presetOf(cfg.Server).keyHeader; cfg.APIKey != "" && header != "" {
		s.head.Set(header, cfg.APIKey)
	} else if cfg.APIKey != "" {
		s.head.Set("Authorization", "Bearer "+cfg.APIKey)
	}
	for _, h := range cfg.Headers {
		s.head.Add(h.Name, h.Value)
	}
	if s.forwarded() && s.proxy.Authorization() != "" {
		s.head.Set("Proxy-Authorization", s.proxy.Authorization())
	}
	return s, nil
}

// newLoop starts the loop that reads connections without TLS, or returns nil if
// there are none or the system does not support it.
func newLoop(servers []*server) (*poll.Loop, error) {
	var loop *poll.Loop
	for _, s := range servers {
		if s.host.TLS != nil {
			continue
		}
		if loop == nil {
			var err error
			if loop, err = poll.New(); errors.Is(err, errors.ErrUnsupported) {
				return nil, nil
			} else if err != nil {
				return nil, err
			}
		}
		s.host.Loop = loop
	}
	return loop, nil
}

// server returns the server of a row. It depends only on the row and the number of
// servers, so it is the same in every run.
func (c *Client) server(r trace.Request, row int) *server {
	n := uint64(len(c.servers))
	if c.cfg.Balance == BySession && r.SessionID != "" {
		return c.servers[xxhash.Sum64String(r.SessionID)%n]
	}
	return c.servers[uint64(row)%n]
}

// TLSConfig returns the configuration of TLS connections to the servers.
func (cfg *Config) TLSConfig() *tls.Config {
	return &tls.Config{RootCAs: cfg.RootCAs, InsecureSkipVerify: cfg.Insecure}
}

// connect sets how connections to the server are opened.
func (s *server) connect(cfg *Config) error {
	secure := s.base.scheme == "https"
	s.host.Address, s.host.NoReuse = fasthttp.AddMissingPort(s.base.host, secure), cfg.Connections == Fresh
	if secure {
		s.host.TLS = cfg.TLSConfig()
		s.host.TLS.ServerName, s.host.TLS.ClientSessionCache = s.base.hostname(), tls.NewLRUClientSessionCache(0)
		s.host.TLS.NextProtos = []string{"http/1.1"}
	}
	s.host.DialContext = s.addresses.DialContext
	if cfg.Proxy == nil {
		return nil
	}
	u, err := cfg.Proxy(&url.URL{Scheme: s.base.scheme, Host: s.base.host})
	if u == nil || err != nil {
		return err
	}
	s.proxy = &dial.Proxy{URL: u, Tunnel: secure, TLS: cfg.TLSConfig(), Dial: s.addresses.DialContext}
	s.host.DialContext = s.proxy.DialContext
	return s.proxy.Check()
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
	for _, s := range c.servers {
		if s.proxy != nil {
			notes = append(notes, fmt.Sprintf("requests to %s go through the proxy %s", s.base.host, s.proxy))
		} else if s.addresses.Spread() > 1 {
			notes = append(notes, fmt.Sprintf("%s has %d addresses: new connections take them in turn, a reused one keeps its own", s.base.hostname(), s.addresses.Spread()))
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
