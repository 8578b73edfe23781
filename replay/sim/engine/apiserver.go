package engine

import "time"

// apiServer handles requests one after another before they go on to the router.
type apiServer struct {
	perRequest, wakeUp time.Duration

	free     time.Duration // when it has handled all requests so far
	inFlight int           // requests of the deployment
	idle     time.Duration // since when there are none
}

// handle returns when a request that arrives now has been handled.
func (s *apiServer) handle(now time.Duration) time.Duration {
	s.free = max(s.free, now) + s.perRequest
	if s.inFlight == 0 && now > s.idle {
		s.free += s.wakeUp
	}
	s.inFlight++
	return s.free
}

// ended records that a request has ended.
func (s *apiServer) ended(now time.Duration) {
	s.inFlight--
	s.idle = now
}

// endedBy records the requests that end by events.
func (s *apiServer) endedBy(events []Event) {
	if s.wakeUp == 0 {
		return
	}
	for _, e := range events {
		if e.Kind == Finished {
			s.ended(e.At)
		}
	}
}
