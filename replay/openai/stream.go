package openai

import (
	"errors"
	"fmt"
	"io"
	"time"

	"moontide/replay"
)

// stream is what has been seen of an answer.
type stream struct {
	out      *replay.Outcome
	expect   int
	done     bool // [DONE] came
	finished bool // a finish reason came
	event    chunk
}

// serverError is an error object inside a stream.
type serverError struct{ message string }

func (e serverError) Error() string { return e.message }

// protocolError is an event that is not what the API says.
type protocolError struct{ event string }

func (e protocolError) Error() string { return "an event is not what the API says: " + e.event }

// read takes events to the end of the stream and returns what ended it, nil
// where that was [DONE]. An event arrived when its last byte did.
func (s *stream) read(body io.Reader, c *conn) error {
	events := newEventReader(body)
	for !s.done {
		data, err := events.next()
		if err != nil {
			return err
		}
		if err := s.take(data, c.arrived); err != nil {
			return err
		}
	}
	return nil
}

// take looks at the data of one event that arrived at an instant.
func (s *stream) take(data []byte, at time.Time) error {
	if string(data) == done {
		s.done = true
		return nil
	}
	if len(data) == 0 { // keeps the connection alive
		return nil
	}
	if err := s.event.decode(data); err != nil {
		return protocolError{string(data)}
	}
	if message, ok := s.event.failure(); ok {
		return serverError{message}
	}
	o := s.out
	if s.event.hasToken() {
		if o.First.IsZero() {
			o.First = at
			o.Gaps = make([]time.Duration, 0, min(max(s.expect-1, 0), 1<<14))
		} else {
			o.Gaps = append(o.Gaps, at.Sub(o.Last))
		}
		o.Last = at
	}
	s.finished = s.finished || s.event.finished()
	if s.event.Usage != nil {
		o.Counts = s.event.Usage.counts(o.Counts)
	}
	return nil
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
	case s.out.First.IsZero():
		return replay.Empty, errors.New("the answer has no tokens")
	}
	return replay.OK, nil
}
