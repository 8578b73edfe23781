package capture

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"runtime"
	"sync"
	"time"

	"moontide/replay/openai"
	"moontide/trace"
	"moontide/trace/record"
)

// Writer takes the rows of a capture in the order in which their requests end. Write is
// not called concurrently.
type Writer interface {
	Write(trace.Request) error
}

// Proxy is an http.Handler that passes requests on to a server and records them. Make
// one with New.
type Proxy struct {
	cfg    Config
	rows   *record.Rows
	out    Writer
	pass   *httputil.ReverseProxy
	server *http.Transport
	keys   record.Keys
	memory memory
	counts *counts

	mu       sync.Mutex // of sessions and of the turns in them
	sessions *record.Sessions

	toHash  chan *exchange
	toWrite chan trace.Request
	hashers sync.WaitGroup // goroutines that hash
	writer  sync.WaitGroup
	open    sync.WaitGroup // exchanges that are not recorded
}

const (
	queuedBodies = 1 << 14 // their bytes are limited by Config.Memory
	queuedRows   = 1 << 12
	mostSessions = 1 << 17 // prompts and names that are remembered
)

// New returns a proxy that writes to out. Close must be called after the last request.
func New(cfg Config, out Writer) (*Proxy, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	p := &Proxy{
		cfg: cfg, rows: record.NewRows(cfg.Config, time.Now()), out: out,
		keys:     cfg.Key.Keys(),
		memory:   memory{most: cfg.Memory},
		counts:   newCounts(),
		sessions: record.NewSessions(mostSessions),
		toHash:   make(chan *exchange, queuedBodies),
		toWrite:  make(chan trace.Request, queuedRows),
	}
	p.server = cfg.transport()
	p.pass = &httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		Transport:      p.server,
		FlushInterval:  -1, // at once
		BufferPool:     new(buffers),
		ModifyResponse: modifyResponse,
		ErrorHandler:   p.unreachable,
		ErrorLog:       log.New(io.Discard, "", 0), // its messages may quote headers
	}
	for range runtime.GOMAXPROCS(0) {
		p.hashers.Go(p.hashAll)
	}
	p.writer.Go(p.writeAll)
	return p, nil
}

// rewrite sends a request to the server, with the client's own forwarding headers.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(p.cfg.Upstream)
	r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
	r.SetXForwarded()
	if _, ok := r.In.Header["User-Agent"]; !ok {
		r.Out.Header.Set("User-Agent", "") // or the transport would add its own
	}
}

// unreachable answers a request that the server did not answer.
func (p *Proxy) unreachable(w http.ResponseWriter, r *http.Request, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadGateway)
	io.WriteString(w, `{"error":{"message":"the upstream server did not answer","type":"bad_gateway","code":502}}`+"\n")
}

type exchangeKey struct{}

func modifyResponse(r *http.Response) error {
	if e, ok := r.Request.Context().Value(exchangeKey{}).(*exchange); ok && r.StatusCode != http.StatusSwitchingProtocols {
		e.begin(r)
		r.Body = answerBody{r.Body, e}
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	over := make(chan struct{})
	defer close(over)
	endpoint := openai.EndpointOf(r.URL.Path)
	if endpoint == "" || r.Method != http.MethodPost {
		p.counts.other.Add(1)
		r.Body = &requestBody{ReadCloser: r.Body, over: over}
		p.pass.ServeHTTP(w, r)
		return
	}
	p.counts.requests.Add(1)
	p.counts.inFlight.Add(1)
	p.open.Add(1)
	e := &exchange{proxy: p, endpoint: endpoint, arrived: arrived, bodyCoding: r.Header.Get("Content-Encoding")}
	e.halves.Store(2)
	e.body = buffer{memory: &p.memory, most: p.cfg.MaxBody}
	if name := p.cfg.SessionHeader; name != "" {
		e.sessionName = p.keys.Sessions.Name(r.Header.Get(name))
	}
	r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, e))
	r.Body = &requestBody{ReadCloser: r.Body, of: e, over: over}
	defer func() { // also when the proxy panics with http.ErrAbortHandler
		p.counts.inFlight.Add(-1)
		e.end(r.Context().Err() != nil)
	}()
	p.pass.ServeHTTP(w, r)
}

// Close waits until all requests that have ended are written, and returns the first
// error of writing. No request may be in flight.
func (p *Proxy) Close() error {
	p.open.Wait()
	close(p.toHash)
	p.hashers.Wait()
	close(p.toWrite)
	p.writer.Wait()
	p.server.CloseIdleConnections()
	return p.Counts().WriteError
}

// buffers is the pool of the buffers in which bodies are copied.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if held, ok := b.pool.Get().(*[32 << 10]byte); ok {
		return held[:]
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(held []byte) { b.pool.Put((*[32 << 10]byte)(held)) }
