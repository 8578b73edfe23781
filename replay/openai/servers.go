package openai

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/valyala/fasthttp"

	"moontide/replay/openai/http1"
	"moontide/replay/openai/poll"
	"moontide/trace"
)

// server is one of a client's servers.
type server struct {
	index int // in Client.servers
	base  *url.URL
	head  fasthttp.RequestHeader // of every POST
	host  http1.Host
}

func newServer(cfg Config, index int, base *url.URL) *server {
	s := &server{index: index, base: base}
	s.host.Address, s.host.NoReuse = fasthttp.AddMissingPort(base.Host, base.Scheme == "https"), cfg.Connections == Fresh
	if base.Scheme == "https" {
		s.host.TLS = &tls.Config{ServerName: base.Hostname(), RootCAs: cfg.RootCAs, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	}
	s.head.SetMethod(fasthttp.MethodPost)
	s.head.SetHost(base.Host)
	s.head.SetContentType("application/json")
	s.head.SetUserAgent("moontide")
	s.head.Set("Accept", "text/event-stream")
	if cfg.APIKey != "" {
		s.head.Set("Authorization", "Bearer "+cfg.APIKey)
	}
	for _, h := range cfg.Headers {
		s.head.Add(h.Name, h.Value)
	}
	return s
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

// path returns the path of requests, after the server's base.
func (cfg Config) path() string { return apiOf(cfg.Endpoint).path }

// parseURL returns a URL without /v1 at its end. Its errors do not contain parts
// that may be secret.
func parseURL(text string) (*url.URL, error) {
	if strings.Contains(text, "@") {
		return nil, errors.New("url has credentials in it: use a header or an API key")
	}
	place, rest, _ := strings.Cut(text, "?")
	u, err := url.Parse(place)
	switch {
	case err != nil:
		return nil, fmt.Errorf("url does not parse: %q", place)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("url is not http://host or https://host: %q", place)
	case rest != "" || u.Fragment != "":
		return nil, errors.New("url has a query or a fragment: an endpoint has none")
	}
	for _, suffix := range []string{"/", "/v1"} {
		u.Path, u.RawPath = strings.TrimSuffix(u.Path, suffix), strings.TrimSuffix(u.RawPath, suffix)
	}
	return u, nil
}

// sessionHeader names the session of a request, so that a router can send its
// turns to the worker that has cached their prefix.
const sessionHeader = "X-Session-ID"

// sessionName returns a session's name in a form allowed in a header: long names
// and names with unusual characters are hashed.
func sessionName(session string) string {
	const longest = 128 // bytes
	unusual := strings.ContainsFunc(session, func(c rune) bool { return c <= ' ' || c >= 0x7f })
	if unusual || len(session) > longest {
		return "x" + strconv.FormatUint(xxhash.Sum64String(session), 16)
	}
	return session
}
