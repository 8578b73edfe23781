package simserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bytedance/sonic"
	"github.com/valyala/fasthttp"
)

// errShutdown ends what is in flight when the server shuts down.
var errShutdown = errors.New("simserver: shut down")

// Server serves an OpenAI-compatible API over one [Engine]. Make it with
// [New]; its methods may be called from any goroutine.
//
// A client that goes away is noticed at the next write to it: in a stream when
// the next token is due, otherwise when the answer is complete.
type Server struct {
	cfg    Config
	http   *fasthttp.Server
	start  time.Time
	model  string // quoted for JSON
	idSeed uint64
	lastID atomic.Uint64

	mu     sync.Mutex // guards engine
	engine *Engine

	done  chan struct{} // closed by Shutdown
	conns connections
}

// New returns a server that has yet to Serve.
func New(cfg Config) *Server {
	compileDecoders()
	cfg = cfg.withDefaults()
	model, err := sonic.ConfigStd.MarshalToString(cfg.Model)
	if err != nil { // cannot be: a string has no form that is not JSON
		model = `""`
	}
	s := &Server{
		cfg:    cfg,
		start:  time.Now(),
		model:  model,
		idSeed: rand.Uint64(),
		engine: NewEngine(cfg),
		done:   make(chan struct{}),
		conns:  connections{active: make(map[net.Conn]bool)},
	}
	s.http = &fasthttp.Server{
		Handler:      s.handle,
		ErrorHandler: refuseBroken,
		ConnState:    s.conns.track,
		Logger:       discard{},
		Name:         "moontide-simserver",
		// Far above the descriptors that a process may have: those are the
		// limit, not a number in here.
		Concurrency:                  1 << 20,
		MaxRequestBodySize:           cfg.MaxBody,
		DisablePreParseMultipartForm: true,
		ReadBufferSize:               8 << 10, // also the most that headers may have
		ReadTimeout:                  10 * time.Minute,
		IdleTimeout:                  2 * time.Minute,
		// Streams are memory: no buffer stays with one that it does not need.
		ReduceMemoryUsage: true,
	}
	return s
}

// Serve answers the connections that ln accepts, until Shutdown, after which
// it returns nil, or until ln fails. It closes ln.
func (s *Server) Serve(ln net.Listener) error {
	// Shutdown may come before the HTTP server knows of ln, so it closes the
	// listener itself; the HTTP server will, too.
	ln = &onceListener{Listener: ln, close: sync.OnceValue(ln.Close)}
	defer ln.Close()
	if !s.conns.listen(ln) {
		return nil
	}
	if err := s.http.Serve(ln); err != nil && !s.isShutDown() {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// Shutdown stops accepting, cuts the streams in flight, answers what else is
// waiting with status 503, and returns when all connections are closed. When
// ctx ends before that it closes them itself and returns the error of ctx. A
// server that was shut down stays so.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.conns.shutDown(func() { close(s.done) })
	if e := s.http.ShutdownWithContext(ctx); e != nil {
		s.conns.closeAll()
		err = e
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

// now is the engine's time.
func (s *Server) now() time.Duration { return time.Since(s.start) }

func (s *Server) submit(r *request) *Timeline {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The time is taken under the lock: the engine's must not go back.
	return s.engine.Submit(s.now(), r.prompt, r.sampling)
}

func (s *Server) release(t *Timeline) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engine.Release(s.now(), t)
}

func (s *Server) stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine.Stats(s.now())
}

// waitUntil returns at the engine's time due, or errShutdown if the server
// shuts down first. timer is stopped, and so it is afterwards.
func (s *Server) waitUntil(timer *time.Timer, due time.Duration) error {
	if s.isShutDown() {
		return errShutdown
	}
	wait := due - s.now()
	if wait <= 0 {
		return nil
	}
	timer.Reset(wait)
	select {
	case <-timer.C:
		return nil
	case <-s.done:
		timer.Stop()
		return errShutdown
	}
}

func newStoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// discard is a logger that does not: every failure reaches the client or is
// one of its own making.
type discard struct{}

func (discard) Printf(string, ...any) {}
