package server

import (
	"math"
	"time"

	"moontide/replay/sim/engine"
)

// rest is the least time between two rounds of the loop. At 66,000 tokens a
// second, evenly spread, a round for each would cost more than the token.
const rest = 200 * time.Microsecond

// clock is the time since the server's start.
func (s *Server) clock() time.Duration { return time.Since(s.start) }

// now is the deployment's time.
func (s *Server) now() time.Duration {
	return time.Duration(float64(s.clock()) * s.cfg.TimeScale)
}

// stampAt is what the system's monotonic clock says at a time of the clock, in
// nanoseconds.
func (s *Server) stampAt(at time.Duration) int64 { return s.mono + int64(at) }

// startLoop starts the loop with the first request. The caller holds the mutex.
func (s *Server) startLoop() {
	if s.alarm != nil {
		return
	}
	s.alarm = s.newAlarm()
	s.loop.Go(s.run)
}

// stopLoop returns when the loop has ended. Nothing is submitted any more.
func (s *Server) stopLoop() {
	s.mu.Lock()
	if s.alarm != nil {
		s.alarm.close()
	}
	s.mu.Unlock()
	s.loop.Wait()
}

// run is the loop: the one goroutine that tells clients what happens to their
// requests.
func (s *Server) run() {
	var events []engine.Event
	for s.alarm.wait() {
		s.mu.Lock()
		s.round = s.clock()
		s.due(s.now())
		events, s.events = s.events, events[:0]
		s.setAlarm()
		s.mu.Unlock()
		s.tell(events)
		clear(events)
	}
}

// advance brings the deployment up to the present. The caller holds the mutex.
func (s *Server) advance() {
	s.due(s.now())
	s.setAlarm()
}

// due adds what happens until now to the events that the loop has to tell.
func (s *Server) due(now time.Duration) { s.events = s.cluster.Advance(now, s.events) }

// setAlarm has the loop wake for what is next. Times are those of the
// deployment, so that a loop that is late delays what is told, and nothing
// after it.
func (s *Server) setAlarm() {
	next, ok := s.cluster.Next()
	at := time.Duration(math.Ceil(float64(next) / s.cfg.TimeScale))
	if len(s.events) > 0 {
		at, ok = 0, true
	}
	if !ok || s.isShutDown() {
		s.alarm.clear()
		return
	}
	s.alarm.set(s.start.Add(max(at, s.round+rest)))
}

// tell tells clients of events, of each client's together.
func (s *Server) tell(events []engine.Event) {
	s.touched = s.touched[:0]
	for _, e := range events {
		f := e.Request.Owner.(*flight)
		switch e.Kind {
		case engine.First, engine.Token:
			if f.there == f.told {
				s.touched = append(s.touched, f)
			}
			f.there++
		}
	}
	for i, f := range s.touched {
		s.touched[i] = nil
		s.deliver(f)
	}
}

// deliver tells a client of the tokens that are there.
func (s *Server) deliver(f *flight) {
	at := s.clock()
	s.measured.tokens(f, at)
	f.told, f.last = f.there, at
	complete := f.there == f.Output
	if complete {
		s.measured.finished(f, at)
	}
	switch {
	case f.script != nil:
		f.script.add(f.there)
	case f.streamed:
		s.buf = f.outlet.offer(f.there, s.buf)
	case complete:
		f.end()
	}
}
