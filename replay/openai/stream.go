package openai

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"moontide/replay"
	"moontide/replay/openai/http1"
	"moontide/replay/openai/poll"
	"moontide/replay/openai/sse"
	"moontide/trace/stats"
)

// stream is the state of an event stream.
type stream struct {
	first, last     time.Time // arrivals of the first and last token chunks
	visible         time.Time // arrival of the first one that is not reasoning
	previousRead    time.Time // last token chunk of an earlier read
	gaps            numbers   // times between token chunks, usually of four bytes
	tokens          chunkTokens
	maxChunks       int              // 0 is no limit
	firstStampError time.Duration    // largest possible error of first
	maxStampError   time.Duration    // largest possible error of any token chunk
	shared          *stats.Durations // errors of stamps shared with a later event; may be nil
	clientStamps    bool             // some stamps are the client's
	newest          bool             // the last event was a token chunk
	done            bool             // [DONE] was received
	finished        bool             // a finish reason was received
	complete        bool             // so was usage, and no token since: only [DONE] is missing
	missingDone     bool             // the stream ended without [DONE]
	told            tokenEvidence    // what the server tells about the tokens of a chunk
	counts          replay.Counts
	onToken         func(data []byte) // may be nil
	kept            *kept             // nil unless later turns need the answer
}

// take handles the data of an event.
func (s *stream) take(data []byte, at poll.Arrival) error {
	if string(data) == sse.Done {
		s.otherEvent(at)
		s.done = true
		return nil
	}
	if len(data) == 0 { // a keep-alive
		return nil
	}
	info, err := readEvent(data, s.kept.next())
	if err != nil {
		return err
	}
	before := s.counts.Output.Value
	s.counts = info.usage.update(s.counts)
	s.told |= info.tokenEvidence()
	if info.counted {
		info.hasToken = s.counts.Output.Value > before
		info.visible = info.hasToken
	}
	if info.hasToken {
		if s.maxChunks > 0 && s.gaps.n >= s.maxChunks {
			return answerError{replay.Protocol, fmt.Sprintf("more than %d token chunks, far above max_tokens", s.maxChunks)}
		}
		s.countTokens(&info, before)
		s.tokenChunk(at)
		if info.visible && s.visible.IsZero() {
			s.visible = s.last
		}
		if s.onToken != nil {
			s.onToken(data)
		}
	} else {
		s.otherEvent(at)
	}
	if s.kept != nil && info.choice {
		s.kept.take(&info)
	}
	s.finished = s.finished || info.finished
	s.done = info.done
	s.complete = s.finished && s.counts.Output.Set && (info.finished || !info.hasToken)
	return nil
}

// awaited tells what the stream is read for. Some servers forget [DONE], so a
// complete answer does not wait for it for long.
func (s *stream) awaited() http1.Action {
	switch {
	case s.complete:
		return http1.Linger
	case s.first.IsZero():
		return http1.Await
	}
	return http1.Read
}

// end records the end of a stream without [DONE].
func (s *stream) end(err error) {
	s.missingDone = s.finished && err == io.EOF || s.complete && errors.Is(err, os.ErrDeadlineExceeded)
}

// countTokens counts the tokens of a token chunk, by its token ids or by how much
// usage has grown since before.
func (s *stream) countTokens(info *chunkInfo, before int) {
	switch {
	case info.tokenIDs > 0:
		s.tokens.add(info.tokenIDs)
	case info.usage.output.Set:
		s.tokens.add(s.counts.Output.Value - before)
	default:
		s.tokens.unknown = true
	}
}

// tokenChunk records the arrival of a token chunk. Network segments may overtake
// each other, but a chunk cannot arrive before its predecessor.
//
// Chunks of one read share the stamp of its last segment. All but the last may
// have arrived earlier, but not before they could have been read, nor before the
// chunk of an earlier read: this bounds the error of their stamps. It is small
// unless the client was late, however many chunks a server sends together.
func (s *stream) tokenChunk(at poll.Arrival) {
	s.clientStamps, s.newest = s.clientStamps || !at.Kernel, true
	if s.first.IsZero() {
		s.first, s.last = at.Time, at.Time
		return
	}
	gap := max(at.Sub(s.last), 0)
	s.gaps.add(uint64(gap))
	if gap > 0 {
		s.previousRead = s.last
	}
	s.last = s.last.Add(gap)
	if gap == 0 {
		s.sharedStamp(at.Unread, at.Kernel)
	}
}

// otherEvent records an event that is not a token chunk. It shares the stamp of a
// token chunk read together with it.
func (s *stream) otherEvent(at poll.Arrival) {
	if s.newest && at.Time.Equal(s.last) {
		s.sharedStamp(at.Unread, at.Kernel)
	}
	s.newest = false
}

// sharedStamp records that the previous token chunk has the same stamp as this
// event.
func (s *stream) sharedStamp(unread time.Duration, kernel bool) {
	late := min(unread, s.last.Sub(s.previousRead))
	s.maxStampError = max(s.maxStampError, late)
	if s.last.Equal(s.first) {
		s.firstStampError = max(s.firstStampError, late)
	}
	if s.shared != nil && kernel {
		s.shared.Add(late, 1)
	}
}

// numbers stores numbers in as few bytes as possible: ten thousand answers may be in
// flight.
type numbers struct {
	bytes []byte // varints
	n     int
}

func (s *numbers) add(x uint64) {
	s.bytes = binary.AppendUvarint(s.bytes, x)
	s.n++
}

// listOf returns the numbers, nil if there are none.
func listOf[T ~int32 | ~int64](s numbers) []T {
	if s.n == 0 {
		return nil
	}
	all := make([]T, 0, s.n)
	for rest := s.bytes; len(rest) > 0; {
		x, size := binary.Uvarint(rest)
		all, rest = append(all, T(x)), rest[size:]
	}
	return all
}

// result classifies a stream that ended with err, which is nil after [DONE].
func (s *stream) result(err error) (replay.Class, error) {
	var known answerError
	var event *sse.ErrorEvent
	switch {
	case errors.As(err, &event):
		return replay.Server, errors.New(errorEventText(event))
	case errors.As(err, &known):
		return known.class, err
	case errors.Is(err, sse.ErrTooLong), errors.Is(err, sse.ErrBudget), errors.Is(err, http1.ErrChunked), errors.Is(err, http1.ErrEncoding):
		return replay.Protocol, err
	case !s.done && !s.missingDone:
		return replay.Truncated, fmt.Errorf("stream truncated before [DONE]: %w", err)
	case s.first.IsZero():
		return replay.Empty, errors.New("the answer has no tokens")
	}
	return replay.OK, nil
}

// chunkTokens stores how many tokens each chunk has. It takes no memory while all
// chunks have one.
type chunkTokens struct {
	numbers
	unknown bool // the server did not tell for some chunk
}

// add adds a chunk of k tokens.
func (c *chunkTokens) add(k int) {
	if k = min(max(k, 0), math.MaxInt32); k == 1 && c.bytes == nil {
		c.n++
		return
	}
	if c.bytes == nil {
		c.bytes = append(make([]byte, 0, 2*c.n+16), bytes.Repeat([]byte{1}, c.n)...)
	}
	c.numbers.add(uint64(k))
}

// list returns the tokens of each chunk, nil if they are unknown or all 1.
func (c *chunkTokens) list() []int32 {
	if c.unknown || c.bytes == nil {
		return nil
	}
	return listOf[int32](c.numbers)
}

// sum returns the tokens of all chunks, if they are known.
func (c *chunkTokens) sum() (tokens int, ok bool) {
	if c.bytes == nil {
		return c.n, !c.unknown
	}
	for _, k := range c.list() {
		tokens += int(k)
	}
	return tokens, !c.unknown
}
