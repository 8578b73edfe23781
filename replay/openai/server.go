package openai

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/valyala/fasthttp"

	"moontide/trace"
)

// server is one of those that requests go to.
type server struct {
	index   int // among the client's
	base    *url.URL
	address string                 // with a port
	secure  *tls.Config            // nil without TLS
	head    fasthttp.RequestHeader // of every POST
	idle    pool
}

func newServer(cfg Config, base *url.URL) *server {
	s := &server{base: base, address: fasthttp.AddMissingPort(base.Host, base.Scheme == "https")}
	if base.Scheme == "https" {
		s.secure = &tls.Config{ServerName: base.Hostname(), RootCAs: cfg.RootCAs, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	}
	s.head.SetMethod(fasthttp.MethodPost)
	s.head.SetRequestURI(base.EscapedPath() + cfg.path())
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

// server chooses who gets a row. It depends on the row alone, so that every
// run with as many servers chooses alike.
func (c *Client) server(r trace.Request, row int) *server {
	n := uint64(len(c.servers))
	if c.cfg.Balance == BySession && r.SessionID != "" {
		return c.servers[xxhash.Sum64String(r.SessionID)%n]
	}
	return c.servers[uint64(row)%n]
}

func (cfg Config) path() string {
	if cfg.Endpoint == Chat {
		return "/v1/chat/completions"
	}
	return "/v1/completions"
}

// parseURL prints no part of a URL that may be a secret.
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
