package server

import (
	"errors"
	"time"

	"moontide/replay/sim/engine"
)

// flight is a request that is being answered: in the deployment as an
// [engine.Request], at the client as an answer.
type flight struct {
	engine.Request
	answer
	server   *Server
	conn     *conn
	begun    time.Duration // when it came, by the clock
	streamed bool
	outlet   outlet  // of a stream
	script   *script // nil: nothing goes wrong with the stream

	// The loop's.
	there, told int           // tokens, and those the client was told of
	last        time.Duration // when it was last told

	ended chan struct{} // closed when the answer is complete
}

// newFlight is what a request that was read asks for.
func (s *Server) newFlight(r *request, a answer, c *conn, begun time.Time) *flight {
	f := &flight{answer: a, server: s, conn: c, begun: begun.Sub(s.start), ended: make(chan struct{})}
	f.outlet.conn, f.outlet.events = c, f
	f.Prompt, f.Session, f.Owner = r.prompt, r.session, f
	f.seed = r.prompt.Hash()
	f.ending = r.sampling.end(f.seed)
	f.Output = f.ending.tokens
	if s.cfg.CacheGenerated {
		for k := range f.Output - 1 {
			f.Prompt.AddAnswer(wordTokens[wordIndex(f.seed, k)])
		}
	}
	return f
}

// usage is known when the first token is there.
func (f *flight) usage() usage { return usage{f.Prompt.Len(), f.Cached()} }

// refuses says why a flight can never be answered, if so.
func (s *Server) refuses(f *flight) *apiError {
	err := s.cluster.Fits(f.Prompt.Len(), f.Output)
	if e, ok := errors.AsType[*engine.TooLong](err); ok {
		return contextLength(e.Limit, e.Prompt, e.Output, f.api)
	}
	if err != nil {
		return badRequest("", "%v", err)
	}
	return nil
}

// fly submits a flight and returns when its answer is complete and, if it is a
// stream, with the kernel. Otherwise it returns errGone as soon as the client
// leaves, or errShutdown, and all that the request had is free at once.
func (s *Server) fly(f *flight) error {
	f.conn.undisturbed()
	if err := s.submit(f); err != nil {
		return err
	}
	defer s.release(f)
	if f.script != nil {
		go f.script.play(s, f)
	}
	if !f.conn.listen() {
		return errGone
	}
	select { // the answer goes first
	case <-f.ended:
	default:
		select {
		case <-f.ended:
		case <-s.done:
			return errShutdown
		}
	}
	f.conn.undisturbed()
	return nil
}

// pause waits for d. It returns errGone as soon as the client leaves, or
// errShutdown.
func (s *Server) pause(c *conn, d time.Duration) error {
	end := time.Now().Add(d)
	c.SetReadDeadline(end)
	s.mu.Lock()
	s.listening[c] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.listening, c)
		s.mu.Unlock()
	}()
	if !s.isShutDown() && !c.listen() {
		return errGone
	}
	select {
	case <-time.After(time.Until(end)): // where it sent too much of its next request
		return nil
	case <-s.done:
		return errShutdown
	}
}

// submit hands a flight to the deployment. It is one that fits.
func (s *Server) submit(f *flight) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isShutDown() {
		return errShutdown
	}
	s.startLoop()
	s.advance()
	if err := s.cluster.Submit(s.now(), &f.Request); err != nil {
		return err
	}
	s.listening[f.conn] = struct{}{}
	s.advance()
	return nil
}

// release ends a flight. One that has not all its tokens is aborted; all that
// it had is free at once.
func (s *Server) release(f *flight) {
	f.outlet.stop()
	if f.script != nil {
		close(f.script.gone)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listening, f.conn)
	if f.Ended() {
		return
	}
	s.advance() // what was due comes first
	if f.Ended() {
		return
	}
	s.cluster.Cancel(s.now(), &f.Request)
	s.measured.aborted.Add(1)
	s.advance()
}
