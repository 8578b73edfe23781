package server

import (
	"errors"
	"time"

	"moontide/replay/sim/engine"
)

// activeRequest is a request in flight: an [engine.Request] of the deployment
// and the answer to a client.
type activeRequest struct {
	engine.Request
	answer
	server   *Server
	conn     *conn
	begun    time.Duration // when it arrived, by the server's clock
	streamed bool
	writer   eventWriter // for a stream

	// Used by the loop only.
	generated, delivered int           // tokens, and those that the client was given
	last                 time.Duration // time of the last delivery

	done chan struct{} // closed when the answer is complete
}

func (s *Server) newActive(r *request, a answer, c *conn, begun time.Time) *activeRequest {
	q := &activeRequest{answer: a, server: s, conn: c, begun: begun.Sub(s.start), done: make(chan struct{})}
	q.writer.q = q
	q.Prompt, q.Session, q.Owner = r.prompt, r.session, q
	seed := r.prompt.Hash()
	q.wording = s.lexicon.wording(seed, s.cfg.ReasoningTokens)
	q.tokens, q.full = r.length.length(seed)
	q.Output = q.tokens
	if q.api.separatesReasoning {
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
	err := s.cluster.Fits(q.Prompt.Len(), q.Output)
	if e, ok := errors.AsType[*engine.TooLong](err); ok {
		return contextLength(e.Limit, e.Prompt, e.Output, q.api)
	}
	if err != nil {
		return badRequest("", "%v", err)
	}
	return nil
}

// run submits a request and returns when its answer is complete and, for a
// stream, written. If the client leaves or the server shuts down, it returns
// errGone or errShutdown at once and frees the request's resources in the
// deployment.
func (s *Server) run(q *activeRequest) error {
	q.conn.resume()
	if err := q.accept(); err != nil {
		return err
	}
	if err := s.submit(q); err != nil {
		return err
	}
	defer s.release(q)
	if !q.conn.awaitLeave() {
		return errGone
	}
	select { // a complete answer takes precedence over a shutdown
	case <-q.done:
	default:
		select {
		case <-q.done:
		case <-s.done:
			return errShutdown
		}
	}
	q.conn.resume()
	return nil
}

// accept writes the events of a stream that precede the first token.
func (q *activeRequest) accept() error {
	if !q.streamed {
		return nil
	}
	q.stamp = q.server.stampAt(q.server.clock())
	events := q.api.accepted.append(nil, &q.answer)
	if len(events) == 0 {
		return nil
	}
	if err := q.conn.SetWriteDeadline(time.Now().Add(slowestWrite)); err != nil {
		return errGone
	}
	if _, err := q.conn.Write(chunkOf(events)); err != nil {
		return errGone
	}
	q.conn.SetWriteDeadline(time.Time{})
	return nil
}

// pause waits for d, or returns errShutdown on shutdown.
func (s *Server) pause(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-s.done:
		return errShutdown
	}
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
	q.writer.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, q.conn)
	if q.Ended() {
		return
	}
	now := s.advance() // process earlier events first
	if q.Ended() {
		return
	}
	s.cluster.Cancel(now, &q.Request)
	s.latencies.aborted.Add(1)
	s.advance()
}
