package server

import (
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

// stampAt converts a time of the clock to the system's monotonic clock, in
// nanoseconds.
func (s *Server) stampAt(at time.Duration) int64 { return s.mono + int64(at) }

// stopLoop returns when the loop has ended. Nothing may be submitted
// afterwards.
func (s *Server) stopLoop() {
	s.mu.Lock()
	timer := s.timer
	s.mu.Unlock()
	if timer != nil {
		timer.Stop()
	}
}

// step runs one round of the loop. It is called by the timer and is the only
// place that delivers tokens.
func (s *Server) step() {
	s.mu.Lock()
	s.round = s.clock()
	s.advanceTo(s.now())
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
	s.advanceTo(now)
	s.setTimer()
	return now
}

func (s *Server) advanceTo(now time.Duration) { s.events = s.cluster.Advance(now, s.events) }

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
		switch e.Kind {
		case engine.First, engine.Token:
			if q.generated == q.delivered {
				s.touched = append(s.touched, q)
			}
			q.generated++
		}
	}
	for i, q := range s.touched {
		s.touched[i] = nil
		s.deliver(q)
	}
}

func (s *Server) deliver(q *activeRequest) {
	at := s.clock()
	s.latencies.tokens(q, at)
	q.delivered, q.last = q.generated, at
	complete := q.generated == q.Output
	if complete {
		s.latencies.complete(q, at)
	}
	switch {
	case q.streamed:
		s.buf = q.writer.offer(q.generated, s.buf)
	case complete:
		q.complete()
	}
}
