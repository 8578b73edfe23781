package live

import (
	"fmt"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"moontide/replay/listen"
	"moontide/replay/weblog"
)

// Server serves metrics over HTTP.
type Server struct {
	listener net.Listener
	http     *fasthttp.Server
}

// Source has metrics in Prometheus' text format. It is called from any goroutine.
type Source interface {
	AppendText(b []byte) []byte
}

// Listen serves metrics at /metrics of an address such as 127.0.0.1:9464, and 200 at
// /healthz.
func Listen(address string, m Source) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serving metrics: %w", err)
	}
	return Serve(listener, m), nil
}

// Serve is [Listen] with a listener.
func Serve(listener net.Listener, m Source) *Server {
	s := &Server{listener, &fasthttp.Server{
		ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxRequestBodySize: 1 << 10, Concurrency: 64, NoDefaultServerHeader: true, Logger: weblog.Logger,
		Handler: func(c *fasthttp.RequestCtx) {
			switch {
			case string(c.Path()) != "/metrics" && string(c.Path()) != "/healthz":
				c.Error("not found: the metrics are at /metrics", fasthttp.StatusNotFound)
			case !c.IsGet():
				c.Error("method not allowed", fasthttp.StatusMethodNotAllowed)
			case string(c.Path()) == "/healthz":
				c.SetBodyString("ok\n")
			default:
				c.SetContentType("text/plain; version=0.0.4; charset=utf-8")
				c.SetBody(m.AppendText(nil))
			}
		},
	}}
	go s.http.Serve(listen.NewListener(listener))
	return s
}

// Address returns the address that is listened on.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close ends the server.
func (s *Server) Close() error { return s.http.Shutdown() }
