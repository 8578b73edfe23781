package replay

import (
	"sync/atomic"
	"time"

	"moontide/trace"
)

// streamReader tracks whether a goroutine is waiting for a stream of rows, which
// may block forever: a context cannot interrupt it.
type streamReader struct{ waiting atomic.Bool }

// each returns reqs with the waiting tracked.
func (s *streamReader) each(reqs trace.Requests) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		s.waiting.Store(true)
		defer s.waiting.Store(false)
		reqs(func(r trace.Request, err error) bool {
			s.waiting.Store(false)
			more := yield(r, err)
			s.waiting.Store(true)
			return more
		})
	}
}

// abandonAfter is how long to wait for an abandoned stream to return.
const abandonAfter = 100 * time.Millisecond

// wait waits for the goroutine that reads the stream to close done. If the
// goroutine is stuck in the stream, wait gives up and returns false. The goroutine
// must then end without side effects once the stream returns.
func (s *streamReader) wait(done <-chan struct{}) bool {
	for {
		select {
		case <-done:
			return true
		case <-time.After(abandonAfter):
			if s.waiting.Load() {
				return false
			}
		}
	}
}
