package capture

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"moontide/replay/listen"
	"moontide/replay/stamp"
	"moontide/replay/weblog"
)

// Serve serves the proxy over HTTP/1.1 until drain is done, waits for the requests in
// flight until stop is done, and closes the proxy. It returns the first error of serving
// or writing.
func (p *Proxy) Serve(drain, stop context.Context, l net.Listener) error {
	p.conns.Most = p.cfg.MaxConnections
	s := &http.Server{
		Handler: p, ConnContext: withConn, ConnState: func(conn net.Conn, state http.ConnState) { p.conns.Track(conn, state) },
		ReadHeaderTimeout: listen.HeadTime, IdleTimeout: 5 * time.Minute, MaxHeaderBytes: 128 << 10,
		ErrorLog: weblog.Logger,
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(stamp.Listen(l)) }()
	var err error
	select {
	case err = <-failed:
	case <-drain.Done():
		p.conns.Close()
		err = s.Shutdown(stop)
	}
	s.Close() // requests in flight end as abandoned
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, context.Canceled) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("serving: %w", err)
	}
	return errors.Join(err, p.Close())
}

type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// arrival returns when the end of a request's head arrived, by the kernel if the
// connection knows: this program may have read it much later.
func arrival(r *http.Request) time.Time {
	if c, ok := r.Context().Value(connKey{}).(*stamp.Conn); ok {
		return c.Arrived()
	}
	return time.Now()
}
