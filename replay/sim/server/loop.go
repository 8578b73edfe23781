package server

import (
	"cmp"
	"errors"
	"math"
	"time"

	"moontide/replay/sim/engine"
)

// rest is the minimum time between two rounds of the loop. At 66,000 tokens a
// second, evenly spread, a round per token would cost more than the token.
const rest = 200 * time.Microsecond

// clock returns the time since the server's start.
func (s *Server) clock() time.Duration { return time.Since(s.start) }

// now returns the deployment's time.
func (s *Server) now() time.Duration {
	return time.Duration(float64(s.clock()) * s.cfg.TimeScale)
}

// stamp returns the time of the system's monotonic clock, in nanoseconds.
func (s *Server) stamp() int64 { return s.mono + int64(s.clock()) }

// step runs one round of the loop. It is called by the timer and is the only
// place that delivers tokens.
func (s *Server) step() {
	s.mu.Lock()
	s.round = s.clock()
	s.events = s.cluster.Advance(s.now(), s.events)
	events := s.events
	s.events = s.spareEvents[:0]
	s.setTimer()
	s.mu.Unlock()
	s.deliverAll(events)
	clear(events)
	s.spareEvents = events
}

// advance advances the deployment to the present, which it returns. The caller
// holds the mutex.
func (s *Server) advance() time.Duration {
	now := s.now()
	s.events = s.cluster.Advance(now, s.events)
	s.setTimer()
	return now
}

// setTimer sets the timer to the next event of the deployment. Events have
// model times: a late round delays what it delivers, but not later events.
func (s *Server) setTimer() {
	next, ok := s.cluster.Next()
	at := time.Duration(math.Ceil(float64(next) / s.cfg.TimeScale))
	if len(s.events) > 0 {
		at, ok = 0, true
	}
	if !ok || s.isShutDown() {
		s.timer.Clear()
		return
	}
	s.timer.Set(s.start.Add(max(at, s.round+rest)))
}

// deliverAll delivers tokens, all new ones of a client at once.
func (s *Server) deliverAll(events []engine.Event) {
	s.touched = s.touched[:0]
	for _, e := range events {
		q := e.Request.Owner.(*activeRequest)
		if e.Kind != engine.First && e.Kind != engine.Token {
			continue
		}
		if q.generated == q.delivered {
			s.touched = append(s.touched, q)
		}
		q.generated++
	}
	for i, q := range s.touched {
		s.touched[i] = nil
		s.deliver(q)
	}
}

func (s *Server) deliver(q *activeRequest) {
	at := s.clock()
	s.latencies.deliver(q, at)
	q.delivered, q.last = q.generated, at
	switch {
	case q.streamed:
		s.buf = q.offer(q.generated, s.buf)
	case q.generated == q.Output:
		q.complete()
	}
}

// activeRequest is a request in flight: an [engine.Request] of the deployment
// and the response to a client.
type activeRequest struct {
	engine.Request
	response
	stream
	server *Server
	conn   *conn
	begun  time.Duration // when it arrived, by the server's clock

	// Used by the loop only.
	generated, delivered int           // tokens, and those that the client was given
	last                 time.Duration // time of the last delivery

	done chan struct{} // closed when the response is complete
}

func (s *Server) newActive(r *request, of response, c *conn, begun time.Time) *activeRequest {
	q := &activeRequest{response: of, server: s, conn: c, begun: begun.Sub(s.start), done: make(chan struct{})}
	q.Prompt, q.Session, q.Owner = r.prompt, r.session, q
	seed := r.prompt.Hash()
	q.wording = wording{s.lexicon, seed, cmp.Or(s.cfg.ReasoningTokens, math.MaxInt)}
	q.tokens, q.full = r.length()
	q.Output = q.tokens
	if q.api.separatesReasoning() {
		q.reasoning = min(s.cfg.ReasoningTokens, q.Output)
	}
	if s.cfg.CacheGenerated {
		for k := range q.Output - 1 {
			q.Prompt.AddAnswer(q.token(k))
		}
	}
	return q
}

// complete wakes the handler waiting in run.
func (q *activeRequest) complete() {
	q.conn.interrupt()
	close(q.done)
}

// tooLong returns an error if a request can never be served.
func (s *Server) tooLong(q *activeRequest) *apiError {
	if e, ok := errors.AsType[*engine.TooLong](s.cluster.Fits(q.Prompt.Len(), q.Output)); ok {
		return contextLength(e.Limit, e.Prompt, e.Output, q.api)
	}
	return nil
}

// run submits a request and returns when its response is complete and, for a
// stream, written. If the client leaves or the server shuts down, it returns
// errGone or errShutdown at once and frees the request's resources in the
// deployment.
func (s *Server) run(q *activeRequest) error {
	q.conn.resume()
	if q.streamed && len(q.api.accepted) > 0 {
		q.offer(0, nil)
	}
	if err := s.submit(q); err != nil {
		return err
	}
	defer s.release(q)
	if !q.conn.awaitLeave() {
		return errGone
	}
	select {
	case <-q.done:
	case <-s.done:
		select {
		case <-q.done: // takes precedence
		default:
			return errShutdown
		}
	}
	q.conn.resume()
	return nil
}

// submit submits a request that fits to the deployment.
func (s *Server) submit(q *activeRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isShutDown() {
		return errShutdown
	}
	if s.timer == nil { // the first request starts the loop
		s.timer = s.newTimer(s.step)
	}
	now := s.advance()
	if err := s.cluster.Submit(now, &q.Request); err != nil {
		return err
	}
	s.waiting[q.conn] = struct{}{}
	s.advance()
	return nil
}

// release ends a request. It is aborted unless all its tokens are generated.
func (s *Server) release(q *activeRequest) {
	q.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, q.conn)
	if !q.Ended() {
		if now := s.advance(); !q.Ended() { // after earlier events
			s.cluster.Cancel(now, &q.Request)
			s.latencies.aborted.Add(1)
			s.advance()
		}
	}
}
