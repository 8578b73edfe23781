package openai

import (
	"errors"

	"github.com/cespare/xxhash/v2"
	"github.com/valyala/fasthttp"

	"moontide/replay/openai/dial"
	"moontide/replay/openai/http1"
	"moontide/replay/openai/http2"
	"moontide/replay/openai/poll"
	"moontide/trace"
)

// server is one of a client's servers.
type server struct {
	index int // in Client.servers
	base  *address
	head  fasthttp.RequestHeader // of every POST
	host  http1.Host

	addresses *dial.Addresses  // nil for a Unix socket
	proxy     *dial.Proxy      // may be nil
	http2     *http2.Transport // nil for HTTP/1.1
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
	switch {
	case cfg.APIKey == "":
	case cfg.APIKeyHeader != "":
		s.head.Set(cfg.APIKeyHeader, cfg.APIKey)
	default:
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
		if s.host.TLS != nil || s.http2 != nil {
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
