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

	"moontide/replay/monotonic"
	"moontide/replay/sim/engine"
)

// errShutdown ends what is in flight when the server shuts down.
var errShutdown = errors.New("simulated server: shut down")

// Server serves an OpenAI-compatible API over a deployment of modelled engines.
// Make it with [New]; its methods may be called from any goroutine.
//
// A client that goes away, also by closing its half of the connection, is
// noticed at once, and its request with it is gone.
type Server struct {
	cfg      Config
	http     *fasthttp.Server
	start    time.Time
	mono     int64  // the same instant of the system's monotonic clock, ns
	model    string // quoted for JSON
	idSeed   uint64
	lastID   atomic.Uint64
	measured measured

	mu      sync.Mutex // guards what follows, and the requests' state in it
	cluster *engine.Cluster
	events  []engine.Event // that the loop has yet to tell
	// Connections whose clients wait for something to happen.
	listening map[*conn]struct{}
	alarm     alarm // of the next event; nil before the first request
	newAlarm  func() alarm
	round     time.Duration // when the loop's last one began

	// The loop's.
	loop    sync.WaitGroup
	touched []*flight
	buf     []byte

	done  chan struct{} // closed by Shutdown
	conns connections
}

// New returns a server that has yet to Serve. The error says what is wrong with
// the configuration.
func New(cfg Config) (*Server, error) {
	cluster, err := cfg.Deployment.New()
	if err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	compileDecoders()
	start := time.Now()
	s := &Server{
		cfg:       cfg,
		start:     start,
		mono:      monotonic.At(start),
		model:     string(quoted(cfg.Model)),
		idSeed:    rand.Uint64(),
		measured:  newMeasured(),
		cluster:   cluster,
		listening: make(map[*conn]struct{}),
		newAlarm:  newAlarm,
		buf:       make([]byte, 0, 4<<10),
		done:      make(chan struct{}),
		conns:     connections{active: make(map[net.Conn]bool)},
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
		WriteBufferSize:              512,     // stays with a stream, which needs it for its headers
		ReadTimeout:                  10 * time.Minute,
		IdleTimeout:                  2 * time.Minute,
		// Streams are memory: no buffer stays with one that it does not need.
		ReduceMemoryUsage: true,
	}
	return s, nil
}

// Serve answers the connections that ln accepts, until Shutdown, after which
// it returns nil, or until ln fails. It closes ln.
func (s *Server) Serve(ln net.Listener) error {
	// Shutdown may come before the HTTP server knows of ln, so it closes the
	// listener itself; the HTTP server will, too.
	ln = &listener{Listener: ln, close: sync.OnceValue(ln.Close)}
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
	err := s.conns.shutDown(s.endWaiting)
	if e := s.http.ShutdownWithContext(ctx); e != nil {
		s.conns.closeAll()
		err = e
	}
	s.stopLoop()
	if err != nil {
		return fmt.Errorf("shutting down: %w", err)
	}
	return nil
}

// endWaiting has everybody wait no longer.
func (s *Server) endWaiting() {
	close(s.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.listening {
		c.interrupt()
	}
}

func (s *Server) isShutDown() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// discard is a logger that does not: every failure reaches the client or is
// one of its own making.
type discard struct{}

func (discard) Printf(string, ...any) {}
