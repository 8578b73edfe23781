package openai

import (
	"cmp"
	"errors"
	"io"
	"time"

	"moontide/replay"
	"moontide/replay/openai/poll"
	"moontide/replay/openai/sse"
)

// Observer reads the answer to a request that somebody else sends, such as a client
// behind a proxy, as a Client reads the answers to its own. An Observer is for one
// answer and is not safe for concurrent use.
//
//	o := openai.Observe(false, nil)
//	for b := range reads {
//		o.Stream(b, time.Now())
//	}
//	seen := o.End(io.EOF)
type Observer struct{ a answer }

// Observed is what an answer told. Counts.Output is not set if neither usage nor token
// ids told it.
type Observed struct {
	First, Last time.Time // arrivals of the first and the last token chunk, or zero
	Chunks      int       // token chunks
	Counts      replay.Counts
	Text        string // reasoning and visible text, if it was kept whole
	Class       replay.Class
	Err         error // nil if Class is replay.OK
}

// EndpointOf returns the value of Config.Endpoint for the path of a request, or "" if no
// API has it. The path may have a prefix, and may lack the version.
func EndpointOf(path string) string {
	endpoint, _ := namedEndpoint(path)
	return endpoint
}

// Observe returns an observer of an answer. If keepText is true, it keeps the text: see
// Held. The budget limits the incomplete events of all observers that share it; it may be
// nil.
func Observe(keepText bool, budget *sse.Budget) *Observer {
	o := &Observer{answer{status: statusOK}}
	o.a.events.Budget = budget
	if keepText {
		o.a.stream.kept = new(kept)
	}
	return o
}

// Stream takes a piece of an event stream that arrived at a time. It does not keep b.
func (o *Observer) Stream(b []byte, at time.Time) {
	if o.a.err == nil {
		o.a.Body(b, poll.Arrival{Time: at})
	}
}

// Whole takes the body of an answer that is not a stream.
func (o *Observer) Whole(body []byte) {
	s := &o.a.stream
	var info chunkInfo
	info, o.a.err = readEvent(body, nil)
	s.counts = info.usage.update(s.counts)
	s.finished, s.done = o.a.err == nil, o.a.err == nil
}

// Held returns the number of bytes of text that are kept.
func (o *Observer) Held() int {
	if k := o.a.stream.kept; k != nil {
		return cap(k.text) + cap(k.reasoning)
	}
	return 0
}

// Forget drops the text and keeps no more of it.
func (o *Observer) Forget() { o.a.stream.kept = nil }

// End ends the answer with the error of reading it, which is io.EOF if it was read to
// its end.
func (o *Observer) End(err error) Observed {
	s := &o.a.stream
	if o.a.err == nil {
		o.a.End(cmp.Or(err, io.ErrUnexpectedEOF))
	}
	o.a.events.Release()
	seen := Observed{First: s.first, Last: s.last, Counts: s.counts, Text: s.text()}
	if !s.first.IsZero() {
		seen.Chunks = s.gaps.n + 1
	}
	if ids, ok := s.tokens.sum(); ok && s.told&inTokenIDs != 0 && !s.counts.Output.Set {
		seen.Counts.Output.Value, seen.Counts.Output.Set = ids, true
	}
	if s.done && s.finished && s.first.IsZero() && o.a.err == nil { // a whole answer
		return seen
	}
	seen.Class, seen.Err = s.result(o.a.err)
	return seen
}

// text returns the text that was kept, "" if some of it could not be.
func (s *stream) text() string {
	if s.kept == nil || s.kept.err != nil {
		return ""
	}
	_, reasoning, err := checked(s.kept.reasoning)
	_, visible, failure := checked(s.kept.text)
	if errors.Join(err, failure) != nil {
		return ""
	}
	return reasoning + visible
}
