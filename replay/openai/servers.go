package openai

import (
	"errors"

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
