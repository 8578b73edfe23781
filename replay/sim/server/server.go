package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"moontide/replay/listen"
	"moontide/replay/monotonic"
	"moontide/replay/sim/engine"
	"moontide/replay/weblog"
	"moontide/trace/jsonscan"
	"moontide/trace/stats"
)

// What ends requests in flight.
var (
	errShutdown = errors.New("simulated server: shut down")
	errGone     = errors.New("simulated server: the client is gone")
)

// Server serves an OpenAI-compatible API with a deployment of modelled engines.
// Make it with [New]. Its methods are safe for concurrent use.
//
// The server detects immediately that a client leaves, including by closing its
// half of the connection, and aborts its request.
type Server struct {
	cfg       Config
	http      *fasthttp.Server
	start     time.Time
	mono      int64  // start on the system's monotonic clock, in ns
	model     string // quoted for JSON
	lexicon   *lexicon
	idSeed    uint64
	lastID    atomic.Uint64
	latencies latencies

	mu       sync.Mutex // guards the fields below and the cluster's requests
	cluster  *engine.Cluster
	events   []engine.Event     // not yet delivered
	waiting  map[*conn]struct{} // clients waiting for a response
	timer    monotonic.Timer    // nil until the first request
	newTimer func(func()) monotonic.Timer
	round    time.Duration // start of the loop's last round

	// Used by the loop only.
	touched     []*activeRequest
	spareEvents []engine.Event
	buf         []byte

	done      chan struct{} // closed by Shutdown
	listeners []net.Listener
	conns     listen.Conns
}

// New checks the configuration and returns a server that is ready to Serve.
func New(cfg Config) (*Server, error) {
	cluster, err := cfg.Deployment.New()
	if err != nil {
		return nil, err
	}
	if cfg, err = cfg.complete(); err != nil {
		return nil, err
	}
	start := time.Now()
	s := &Server{
		cfg:       cfg,
		start:     start,
		mono:      monotonic.At(start),
		model:     string(jsonscan.AppendString(nil, cfg.Model)),
		lexicon:   lexiconOf(cfg.Encode),
		idSeed:    rand.Uint64(),
		latencies: latencies{ttft: stats.NewDurations(10), itl: stats.NewDurations(10), e2el: stats.NewDurations(10)},
		cluster:   cluster,
		waiting:   make(map[*conn]struct{}),
		newTimer:  monotonic.NewTimer,
		buf:       make([]byte, 0, 4<<10),
		done:      make(chan struct{}),
		conns:     listen.Conns{Most: cfg.MaxConnections},
	}
	s.http = &fasthttp.Server{
		Handler:                      s.handle,
		ErrorHandler:                 refuseBroken,
		ConnState:                    func(conn net.Conn, state fasthttp.ConnState) { s.conns.Track(conn, state) },
		Logger:                       weblog.Logger,
		Name:                         "moontide-simserver",
		Concurrency:                  1 << 20, // above the limit of connections
		MaxRequestBodySize:           maxBody,
		DisablePreParseMultipartForm: true,
		ReadBufferSize:               8 << 10, // also limits the headers
		WriteBufferSize:              512,     // every stream keeps one
		ReadTimeout:                  listen.HeadTime,
		HeaderReceived: func(*fasthttp.RequestHeader) fasthttp.RequestConfig {
			return fasthttp.RequestConfig{ReadTimeout: bodyTime}
		},
		IdleTimeout:       2 * time.Minute,
		ReduceMemoryUsage: true, // streams keep no unneeded buffers
	}
	return s, nil
}

// Serve accepts connections on ln until Shutdown, when it returns nil, or until
// ln fails. It closes ln.
func (s *Server) Serve(ln net.Listener) error {
	// Shutdown may be called before fasthttp knows ln, so both close it.
	ln = listener{listen.NewListener(ln)}
	defer ln.Close()
	s.mu.Lock()
	s.listeners = append(s.listeners, ln)
	late := s.isShutDown()
	s.mu.Unlock()
	if late {
		return nil
	}
	if err := s.http.Serve(ln); err != nil && !s.isShutDown() {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// Shutdown stops accepting, ends the streams in flight, refuses other requests
// with status 503, and returns when all connections are closed. If ctx ends
// first, it closes them and returns the error of ctx. The server cannot be
// reused.
func (s *Server) Shutdown(ctx context.Context) (err error) {
	s.mu.Lock()
	if !s.isShutDown() {
		close(s.done)
		for c := range s.waiting {
			c.interrupt()
		}
		for _, ln := range s.listeners {
			err = errors.Join(err, ln.Close())
		}
	}
	timer := s.timer
	s.mu.Unlock()
	s.conns.Close()
	if e := s.http.ShutdownWithContext(ctx); e != nil {
		s.conns.CloseAll()
		err = e
	}
	if timer != nil {
		timer.Stop() // returns when the loop has ended
	}
	if err != nil {
		return fmt.Errorf("shutting down: %w", err)
	}
	return nil
}

func (s *Server) isShutDown() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// Run serves on ln until ctx ends, shuts down, for which responses in flight have five
// seconds, and returns a summary. It closes ln.
func Run(ctx context.Context, ln net.Listener, cfg Config) (Summary, error) {
	s, err := New(cfg)
	if err != nil {
		ln.Close()
		return Summary{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	select {
	case err := <-ended:
		return Summary{}, err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.Shutdown(grace); err != nil {
		return Summary{}, fmt.Errorf("shutting the endpoint down: %w", err)
	}
	return s.Summary(), <-ended
}
