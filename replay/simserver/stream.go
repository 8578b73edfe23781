package simserver

import (
	"io"
	"time"
)

// eventStream is the body of a streamed answer. The HTTP server writes and
// flushes one chunk for each Read, so a Read waits until the next token is due
// and returns all events that are due by then: one token a chunk as long as
// the writer keeps up, and no more writes than needed when it does not.
//
// Due times are those of the timeline, not a pause after the event before, so
// a stream that was held up catches up and does not drift.
type eventStream struct {
	server  *Server
	answer  *answer
	timer   *time.Timer
	sent    int    // tokens whose events have been built
	pending []byte // built and not yet read
	buf     []byte // the memory behind pending
}

// The HTTP server finds Close by its type only.
var _ io.ReadCloser = (*eventStream)(nil)

// Read returns io.EOF after the end of the stream, and errShutdown when the
// server shuts down before it.
func (s *eventStream) Read(p []byte) (int, error) {
	if len(s.pending) == 0 {
		if s.sent == s.answer.timeline.Tokens {
			return 0, io.EOF
		}
		if err := s.server.waitUntil(s.timer, s.answer.timeline.Due(s.sent)); err != nil {
			return 0, err
		}
		s.build(len(p))
	}
	n := copy(p, s.pending)
	s.pending = s.pending[n:]
	if len(s.pending) == 0 && s.sent == s.answer.timeline.Tokens {
		// Now rather than on Close, which follows the last write: whoever has
		// seen the end of the stream finds the request finished.
		s.server.release(s.answer.timeline)
	}
	return n, nil
}

// build makes the events that are due pending, up to room bytes of them so
// that none is torn, and at least one.
func (s *eventStream) build(room int) {
	b := s.buf[:0]
	for due := s.answer.timeline.Out(s.server.now()); s.sent < due; s.sent++ {
		before := len(b)
		b = s.answer.appendEvents(b, s.sent)
		if len(b) > room && before > 0 {
			b = b[:before]
			break
		}
	}
	s.buf, s.pending = b, b
}

// Close frees the request, whose client may be gone before its end.
func (s *eventStream) Close() error {
	s.timer.Stop()
	s.server.release(s.answer.timeline)
	return nil
}
