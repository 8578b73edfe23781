// Package http2 sends the requests of package http1 over HTTP/2, for gateways that
// support nothing else:
//
//	t := http2.New(http2.Config{Address: "example.com:443", TLS: config})
//	host := http1.Host{Open: t.Open}
//
// Requests share connections, which are opened as needed. The instants of a response
// are those of the client's reads: what the kernel stamps is a connection, not a
// response.
package http2

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"sync"
	"time"

	"moontide/replay/openai/http1"
	"moontide/replay/openai/poll"
)

// Config configures a Transport.
type Config struct {
	Address     string      // host:port of the server
	TLS         *tls.Config // nil means without TLS and with prior knowledge (h2c)
	NoReuse     bool        // a connection for each request
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
}

// Transport sends requests to one server. It is safe for concurrent use.
type Transport struct {
	http            http.Transport
	scheme, address string
}

// New returns a Transport.
func New(cfg Config) *Transport {
	t := &Transport{scheme: "http", address: cfg.Address}
	protocols := new(http.Protocols)
	if cfg.TLS != nil {
		t.scheme = "https"
		t.http.TLSClientConfig = cfg.TLS.Clone()
		protocols.SetHTTP2(true)
	} else {
		protocols.SetUnencryptedHTTP2(true)
	}
	t.http.Protocols, t.http.DialContext = protocols, cfg.DialContext
	t.http.DisableKeepAlives, t.http.DisableCompression = cfg.NoReuse, true
	return t
}

// Close closes the connections that no request uses.
func (t *Transport) Close() { t.http.CloseIdleConnections() }

// Open returns a transport for one request.
func (t *Transport) Open() http1.Transport { return &exchange{transport: t} }

// exchange is a request and its response.
type exchange struct {
	transport *Transport
	handler   poll.Handler
	deadline  time.Time
	parts     [][]byte
	timer     *time.Timer
	begun     bool

	mu    sync.Mutex
	sent  time.Time
	wrote bool
}

// Begin implements http1.Transport. Wait sends the request.
func (e *exchange) Begin(h poll.Handler, deadline time.Time, parts ...[]byte) {
	e.handler, e.deadline, e.parts, e.begun = h, deadline, parts, true
}

// Wait implements http1.Transport.
func (e *exchange) Wait(ctx context.Context) (sent time.Time, wrote bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	e.timer = time.AfterFunc(time.Until(e.deadline), func() { cancel(os.ErrDeadlineExceeded) })
	defer e.timer.Stop()
	err = e.exchange(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		e.handler.End(err, poll.Arrival{Time: time.Now()})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sent, e.wrote, nil
}

// exchange feeds the response to the handler, up to the error that ends it; nil if
// the handler ended it.
func (e *exchange) exchange(ctx context.Context) error {
	request, err := e.request(ctx)
	if err != nil {
		return err
	}
	response, err := e.transport.http.RoundTrip(request)
	if err != nil {
		return withoutSource(err)
	}
	defer response.Body.Close()
	if e.handler.Feed(head(response), poll.Arrival{Time: time.Now()}) {
		return nil
	}
	for buf := make([]byte, 4<<10); ; {
		n, err := response.Body.Read(buf)
		if n > 0 && e.handler.Feed(buf[:n], poll.Arrival{Time: time.Now()}) {
			return nil
		}
		if err != nil {
			return withoutSource(err)
		}
	}
}

// request parses the parts of the request.
func (e *exchange) request(ctx context.Context) (*http.Request, error) {
	text := bytes.Join(e.parts, nil)
	e.parts = nil
	parsed, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text)))
	if err != nil {
		return nil, err
	}
	body := text[int64(len(text))-max(parsed.ContentLength, 0):]
	trace := &httptrace.ClientTrace{
		// A request that the server refuses unread is sent again: the last time counts.
		GotConn: func(httptrace.GotConnInfo) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.sent = time.Now()
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.wrote = info.Err == nil
		},
	}
	r := parsed.WithContext(httptrace.WithClientTrace(ctx, trace))
	r.RequestURI, r.URL.Scheme, r.URL.Host = "", e.transport.scheme, e.transport.address
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody()
	return r, nil
}

// head returns the head of a response in HTTP/1.1. The body ends with the stream.
func head(response *http.Response) []byte {
	var text bytes.Buffer
	text.WriteString("HTTP/1.1 " + response.Status + "\r\n")
	response.Header.WriteSubset(&text, map[string]bool{"Content-Length": true, "Transfer-Encoding": true, "Connection": true})
	text.WriteString("Connection: close\r\n\r\n")
	return text.Bytes()
}

// SetDeadline implements http1.Transport. The handler calls it during Feed.
func (e *exchange) SetDeadline(deadline time.Time) error {
	e.timer.Reset(time.Until(deadline))
	return nil
}

// Alive implements http1.Transport: an exchange carries one request.
func (e *exchange) Alive() bool { return !e.begun }

// Close implements http1.Transport. Wait has closed what the request used.
func (e *exchange) Close() error { return nil }

// withoutSource removes the client's port from an error: errors are counted by their
// text.
func withoutSource(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		op.Source = nil
	}
	return err
}
