package openai

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"moontide/replay"
	"moontide/replay/openai/poll"
)

// stream is what has been seen of the events of an answer.
type stream struct {
	first, last time.Time     // token chunks
	before      time.Time     // the last token chunk of an earlier read
	gaps        gaps          // between them
	firstBlur   time.Duration // the most by which first may be too late
	blur        time.Duration // the most by which any chunk may be
	merges      *poll.Counter // nil: nobody counts
	foreign     bool          // an instant was not the kernel's
	done        bool          // [DONE] came
	finished    bool          // a finish reason came
	counts      replay.Counts
	newest      bool              // nothing came behind the last token chunk yet
	onToken     func(data []byte) // nil: nobody is told
}

// serverError is an error object inside a stream.
type serverError struct{ message string }

func (e serverError) Error() string { return e.message }

// protocolError is an event that is not what the API says.
type protocolError struct{ event string }

func (e protocolError) Error() string { return "an event is not what the API says: " + e.event }

// take looks at the data of one event that arrived at an instant.
func (s *stream) take(data []byte, at poll.Arrival) error {
	if string(data) == done {
		s.behind(at)
		s.done = true
		return nil
	}
	if len(data) == 0 { // keeps the connection alive
		return nil
	}
	seen, ok := glanceAt(data)
	if !ok {
		var err error
		if seen, err = s.decode(data); err != nil {
			return err
		}
	}
	s.counts = seen.usage.over(s.counts)
	if seen.token {
		s.token(at)
		if s.onToken != nil {
			s.onToken(data)
		}
	} else {
		s.behind(at)
	}
	s.finished = s.finished || seen.finished
	return nil
}

// token notes that a token chunk arrived. A chunk never arrived before the one
// in front of it, whatever segments of the network overtook each other.
//
// Chunks that were read together have the instant of the last. The others may
// have come earlier, though not before they could have been read, nor before
// what was read before them: that is the blur. It is small unless the client
// was late, and says nothing against a server that sends chunks together.
func (s *stream) token(at poll.Arrival) {
	s.foreign, s.newest = s.foreign || !at.Kernel, true
	if s.first.IsZero() {
		s.first, s.last = at.Time, at.Time
		return
	}
	gap := max(at.Sub(s.last), 0)
	s.gaps.add(gap)
	if gap > 0 {
		s.before = s.last
	}
	s.last = s.last.Add(gap)
	if gap == 0 {
		s.merged(min(at.Unread, s.last.Sub(s.before)), at.Kernel)
	}
}

// behind notes that an event came that is no token chunk. A token chunk that was
// read together with it, as the last of an answer with its end, has its instant.
func (s *stream) behind(at poll.Arrival) {
	if s.newest && at.Time.Equal(s.last) {
		s.merged(min(at.Unread, s.last.Sub(s.before)), at.Kernel)
	}
	s.newest = false
}

// merged notes that the chunk in front of this one may be too late by as much
// as late, and with it all that were read before it at once.
func (s *stream) merged(late time.Duration, stamped bool) {
	s.blur = max(s.blur, late)
	if s.last.Equal(s.first) {
		s.firstBlur = max(s.firstBlur, late)
	}
	if s.merges != nil && stamped {
		s.merges.Add(late, 1)
	}
}

// chunks are reused: those that are decoded are few, but not with all servers.
var chunks = sync.Pool{New: func() any { return new(chunk) }}

func (s *stream) decode(data []byte) (glance, error) {
	c := chunks.Get().(*chunk)
	defer chunks.Put(c)
	if err := c.decode(data); err != nil {
		return glance{}, protocolError{string(data)}
	}
	if message, ok := c.failure(); ok {
		return glance{}, serverError{message}
	}
	return glance{c.hasToken(), c.finished(), c.tally()}, nil
}

// judge says how a stream ended, given what ended it.
func (s *stream) judge(err error) (replay.Class, error) {
	var fromServer serverError
	var garbage protocolError
	complete := s.done || s.finished && err == io.EOF
	switch {
	case errors.As(err, &fromServer):
		return replay.Server, err
	case errors.As(err, &garbage), errors.Is(err, errEventTooLong), errors.Is(err, errChunk):
		return replay.Protocol, err
	case !complete:
		return replay.Truncated, fmt.Errorf("the stream ended before its end: %w", err)
	case s.first.IsZero():
		return replay.Empty, errors.New("the answer has no tokens")
	}
	return replay.OK, nil
}
