package capture

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"path"
	"runtime"
	"strings"
	"sync"
	"time"

	"moontide/replay/listen"
	"moontide/replay/openai"
	"moontide/replay/openai/http1"
	"moontide/replay/openai/sse"
	"moontide/replay/stamp"
	"moontide/replay/weblog"
	"moontide/trace"
	"moontide/trace/log"
)

// Writer writes the rows of a capture, in the order in which their requests end. It may
// keep rows in memory until Flush, about once a second. An error of Write loses its row,
// an error of Flush all rows since the last flush. Neither is called concurrently.
type Writer interface {
	Write(trace.Request) error
	Flush() error
}

// Proxy is an http.Handler that forwards requests to a server and records them. Make one
// with New.
type Proxy struct {
	cfg    Config
	name   string // in Via headers
	rows   *log.Rows
	out    Writer
	pass   *httputil.ReverseProxy
	server *http.Transport
	keys   log.Keys
	memory memory
	events sse.Budget
	conns  listen.Conns

	countsMu sync.Mutex
	counts   Counts
	mu       sync.Mutex // guards sessions and their turns
	sessions *log.Sessions

	toHash   chan *exchange
	toRecord chan *exchange
	workers  sync.WaitGroup
	open     sync.WaitGroup // exchanges that are not recorded yet
}

const (
	queuedBodies = 1 << 14 // their bytes are limited by Config.Memory
	queuedRows   = 1 << 12
	mostSessions = 1 << 17 // in memory
	flushEvery   = time.Second
)

// New returns a proxy that writes to out. Close must be called after the last request.
func New(cfg Config, out Writer) (*Proxy, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	p := &Proxy{
		cfg: cfg, rows: log.NewRows(cfg.Config, time.Now()), out: out,
		keys:     cfg.Key.Keys(),
		name:     "moontide-" + cfg.Key.Keys().Requests.Name(time.Now().String()),
		memory:   memory{most: cfg.Memory},
		counts:   newCounts(),
		sessions: log.NewSessions(mostSessions),
		toHash:   make(chan *exchange, queuedBodies),
		toRecord: make(chan *exchange, queuedRows),
	}
	p.server = cfg.transport()
	p.pass = &httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		Transport:      p.server,
		FlushInterval:  -1, // no buffering
		BufferPool:     new(buffers),
		ModifyResponse: modifyResponse,
		ErrorHandler:   p.unreachable,
		ErrorLog:       weblog.Logger,
	}
	for range max(1, runtime.GOMAXPROCS(0)/2) { // the traffic comes first
		p.workers.Go(p.hashAll)
	}
	p.workers.Go(p.recordAll)
	return p, nil
}

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

// keepIdle is the idle timeout of connections to the server. It is below the 5 s of
// servers: a request sent while the server closes its connection fails, and must not be
// sent twice.
const keepIdle = 4 * time.Second

// transport returns a transport that does not decompress bodies and uses no proxy.
func (c Config) transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.IdleConnTimeout = 0, 1024, keepIdle
	t.MaxConnsPerHost = c.MaxConnections // a client has one request at a time
	t.MaxResponseHeaderBytes = 1 << 20
	t.Proxy, t.TLSClientConfig = nil, c.TLS
	// Pings detect dead HTTP/2 servers. For HTTP/1.1, TCP keep-alive does.
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
	return t
}

// rewrite forwards a request as the client sent it, with the headers of a gateway, see
// RFC 9110.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(p.cfg.Upstream)
	r.Out.URL.RawQuery = r.In.URL.RawQuery // also what Go cannot parse
	sent, _, _ := strings.Cut(r.In.RequestURI, "?")
	sent = strings.TrimSuffix(p.cfg.Upstream.EscapedPath(), "/") + sent
	if r.Out.URL.EscapedPath() != sent && r.In.URL.Host == "" && !strings.HasPrefix(sent, "//") {
		r.Out.URL.Opaque = sent // Go would encode some characters
	}
	r.Out.Trailer = r.In.Trailer // filled at the end of the body
	r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
	r.SetXForwarded()
	for _, name := range []string{"Forwarded", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := r.In.Header[name]; ok { // a gateway before this one set them
			r.Out.Header[name] = values
		}
	}
	r.Out.Header.Add("Via", fmt.Sprintf("%d.%d %s", r.In.ProtoMajor, r.In.ProtoMinor, p.name))
	if _, ok := r.In.Header["User-Agent"]; !ok {
		r.Out.Header.Set("User-Agent", "") // or the transport would add its own
	}
	// An upgraded connection could not be recorded. A server need not upgrade.
	if exchangeOf(r.In).endpoint != "" || strings.EqualFold(r.Out.Header.Get("Upgrade"), "h2c") {
		r.Out.Header.Del("Upgrade")
		r.Out.Header.Del("Connection")
	}
}

// refuse responds to a request with an error.
func refuse(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"message":%q,"type":%q,"code":%d}}`+"\n", message, kind, status)
}

// unreachable responds to a request that the server did not respond to.
func (p *Proxy) unreachable(w http.ResponseWriter, r *http.Request, _ error) {
	message := "the upstream server did not respond"
	if flood := exchangeOf(r).flooded(); flood != nil {
		message = "the upstream server sent " + flood.Error()
	}
	refuse(w, http.StatusBadGateway, "bad_gateway", message)
}

type exchangeKey struct{}

func exchangeOf(r *http.Request) *exchange { return r.Context().Value(exchangeKey{}).(*exchange) }

// gotInterim ends an exchange whose server sends interim responses without end.
func (e *exchange) gotInterim(_ int, header textproto.MIMEHeader) error {
	e.interim.Add(int64(len("HTTP/1.1 103 OK\r\n\r\n") + len(fmt.Sprint(header))))
	return e.flooded()
}

// flooded is called again when a request has failed: the transport closes the connection
// after an error of gotInterim, and may return what follows from that instead.
func (e *exchange) flooded() error {
	if e.interim.Load() > http1.MaxInterim {
		return http1.ErrInterim
	}
	return nil
}

func modifyResponse(r *http.Response) error {
	e := exchangeOf(r.Request)
	if e.upgraded = r.StatusCode == http.StatusSwitchingProtocols; !e.upgraded { // else the body is a connection
		e.beginResponse(r)
		r.Body = &responseBody{ReadCloser: r.Body, exchange: e}
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := &exchange{proxy: p, arrived: arrival(r), returned: make(chan struct{}), client: client{conn: http.NewResponseController(w), stall: p.cfg.Stall}}
	e.client.takes(time.Now()) // for 100 Continue
	for _, via := range r.Header["Via"] {
		if strings.Contains(via, p.name) {
			refuse(w, http.StatusLoopDetected, "loop_detected", "the upstream server is this proxy")
			return
		}
	}
	e.beginRequest(r)
	conn := r.Context().Value(connKey{})
	defer func() { // also when the proxy panics with http.ErrAbortHandler
		e.end(r.Context().Err() != nil)
		close(e.returned)
		e.client.conn.SetReadDeadline(time.Now().Add(p.cfg.Stall)) // for the rest of the body
		if conn, ok := conn.(net.Conn); ok && e.upgraded {
			p.conns.Remove(conn)
		}
	}()
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: e.gotInterim})
	r = r.WithContext(context.WithValue(ctx, exchangeKey{}, e))
	r.Body = &requestBody{ReadCloser: r.Body, exchange: e}
	p.pass.ServeHTTP(&responseWriter{w, &e.client}, r)
}

// beginRequest decides whether the exchange is recorded, and whether its body is kept.
func (e *exchange) beginRequest(r *http.Request) {
	p := e.proxy
	if r.Method == http.MethodPost {
		e.endpoint = openai.EndpointOf(path.Clean(r.URL.Path))
	}
	if e.endpoint == "" {
		p.count(func(sum *Counts) { sum.Other++ })
		e.bodyDone = true
		e.hashing.Do(func() {}) // there is nothing to hash
		return
	}
	p.count(func(sum *Counts) { sum.Requests, sum.InFlight = sum.Requests+1, sum.InFlight+1 })
	p.open.Add(1)
	e.openHalves.Store(2)
	e.bodyCoding = r.Header.Get("Content-Encoding")
	e.body = buffer{memory: &p.memory, most: p.cfg.MaxBody, expect: r.ContentLength}
	if name := p.cfg.SessionHeader; name != "" {
		e.sessionName = p.keys.Sessions.Name(r.Header.Get(name))
	}
	if e.sessionName != "" && p.cfg.SessionField == "" && !p.sampled(e.sessionName) {
		e.body.drop(notSampled)
	}
}

// sampled reports whether a session is recorded.
func (p *Proxy) sampled(session string) bool {
	return p.cfg.SampleOneIn == 1 || p.keys.Sessions.OneIn(session, p.cfg.SampleOneIn)
}

// Close waits until all requests that have ended are written, and returns the first
// error of writing. No request may be in flight.
func (p *Proxy) Close() error {
	p.open.Wait()
	close(p.toHash)
	close(p.toRecord)
	p.workers.Wait()
	p.server.CloseIdleConnections()
	return p.Counts().WriteError
}

// buffers is a pool of buffers for copying bodies.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if held, ok := b.pool.Get().(*[32 << 10]byte); ok {
		return held[:]
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(held []byte) { b.pool.Put((*[32 << 10]byte)(held)) }
