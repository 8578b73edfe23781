// Package sse parses streams of server-sent events (WHATWG HTML, section 9.2).
//
// A [Parser] takes the bytes of a stream as they arrive, cut anywhere, and returns
// the data of each complete event:
//
//	var p sse.Parser
//	for b := range reads {
//		for data, rest, ok, err := p.Next(b); ok; data, rest, ok, err = p.Next(rest) {
//			handle(data)
//		}
//	}
//
// Lines end in LF, CRLF or CR. The data lines of an event are joined with LF.
// Comments and other fields are ignored, except for errors that inference servers
// send inside a stream; see [ErrorEvent]. A byte order mark at the start of a line
// or of its value is ignored: the standard has one at the start of the stream only,
// but proxies join streams. An event that arrives in one piece is not copied and
// costs no allocation.
package sse

import (
	"bytes"
	"errors"
)

// Done is the data of the event that ends an OpenAI API stream.
const Done = "[DONE]"

const (
	maxEvent   = 16 << 20 // bytes
	maxComment = 64 << 10 // bytes kept of the comments of an error event
	// keepBuffer is the largest buffer kept for the next event.
	keepBuffer = 4 << 10
)

// ErrTooLong is returned for an event of more than 16 MiB.
var ErrTooLong = errors.New("an event is longer than 16 MiB")

// byteOrderMark is U+FEFF in UTF-8.
const byteOrderMark = "\uFEFF"

// ErrorEvent is an event with which a server reports an error: one of type
// "error", or one with a field named "error" (llama.cpp until late 2025). Such a
// stream still continues to [DONE]. Dynamo puts the message in comments.
type ErrorEvent struct{ Data, Comment string }

func (e *ErrorEvent) Error() string {
	if e.Comment == "" {
		return "error event: " + e.Data
	}
	return "error event: " + e.Comment
}

// Parser splits a byte stream into events. The zero Parser is ready to use. It
// buffers only incomplete events, up to 16 MiB.
type Parser struct {
	// Budget, if not nil, also limits the buffers. [Parser.Release] must then be
	// called when the Parser is no longer used.
	Budget *Budget

	line     []byte // the unfinished line
	data     []byte // of the unfinished event
	comment  []byte // of an error event
	hasData  bool
	failed   bool // the event is an error
	afterCR  bool // the last line ended in CR: a following LF belongs to it
	returned bool // data was returned by the last Next
	charged  int  // bytes of the Budget
}

// Next returns the data of the first event that ends in b, and the rest of b. data
// is valid until the next call. If no event ends in b, ok is false and b is used
// up. After an error, [ErrTooLong], [ErrBudget] or an *[ErrorEvent], the Parser must
// not be used again.
func (p *Parser) Next(b []byte) (data, rest []byte, ok bool, err error) {
	if p.returned {
		p.returned, p.hasData = false, false
		p.data = emptied(p.data)
	}
	for {
		if p.afterCR && len(b) > 0 {
			p.afterCR = false
			if b[0] == '\n' {
				b = b[1:]
			}
		}
		if len(p.line) == 0 && !p.hasData && !p.failed {
			if data, rest, ok := wholeEvent(b); ok {
				return data, rest, true, nil
			}
		}
		end := lineEnd(b)
		if end < 0 {
			if p.line = append(p.line, b...); len(p.line) > maxEvent {
				return nil, nil, false, ErrTooLong
			}
			return nil, nil, false, p.settle()
		}
		line := b[:end]
		p.afterCR = b[end] == '\r'
		b = b[end+1:]
		if len(p.line) > 0 {
			line = append(p.line, line...)
			p.line = emptied(line)
		}
		switch line = withoutMark(line); {
		case len(line) > 0:
			if err := p.takeLine(line); err != nil {
				return nil, b, false, err
			}
		case p.failed:
			return nil, b, false, p.errorEvent()
		case p.hasData:
			p.returned = true
			return p.data, b, true, nil
		}
	}
}

// End must be called at the end of the stream. It returns an *[ErrorEvent] if the
// unfinished event is an error. As the standard requires, any other unfinished
// event is discarded; done reports whether it was [Done], because some servers
// omit the final blank line.
func (p *Parser) End() (done bool, err error) {
	if p.failed {
		return false, p.errorEvent()
	}
	if name, value := field(withoutMark(p.line)); string(name) == "data" && string(value) == Done {
		return !p.hasData, nil
	}
	return p.hasData && !p.returned && string(p.data) == Done, nil
}

// wholeEvent is the fast path: b begins with one data line and the blank line
// that ends the event.
func wholeEvent(b []byte) (data, rest []byte, ok bool) {
	const prefix = "data: "
	if len(b) < len(prefix) || string(b[:len(prefix)]) != prefix {
		return nil, nil, false
	}
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return nil, nil, false
	}
	data, rest = b[len(prefix):end], b[end+1:]
	switch {
	case len(rest) > 0 && rest[0] == '\n':
		rest = rest[1:]
	case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n' && len(data) > 0 && data[len(data)-1] == '\r':
		data, rest = data[:len(data)-1], rest[2:]
	default:
		return nil, nil, false
	}
	return withoutMark(data), rest, bytes.IndexByte(data, '\r') < 0
}

// takeLine handles a complete, nonempty line.
func (p *Parser) takeLine(line []byte) error {
	switch name, value := field(line); string(name) {
	case "event":
		p.failed = p.failed || string(value) == "error"
	case "": // a comment
		if room := maxComment - len(p.comment); p.failed && room > 0 {
			p.comment = append(append(p.comment, ' '), value[:min(len(value), room)]...)
		}
	case "error":
		p.failed = true
		return p.takeData(value)
	case "data":
		return p.takeData(value)
	}
	return nil
}

func (p *Parser) takeData(value []byte) error {
	if p.hasData {
		p.data = append(p.data, '\n')
	}
	if p.data = append(p.data, value...); len(p.data) > maxEvent {
		return ErrTooLong
	}
	p.hasData = true
	return nil
}

func (p *Parser) errorEvent() error {
	return &ErrorEvent{Data: string(p.data), Comment: string(bytes.TrimSpace(p.comment))}
}

// emptied returns b with length 0, or nil if it is too large to keep.
func emptied(b []byte) []byte {
	if cap(b) > keepBuffer {
		return nil
	}
	return b[:0]
}

// field splits a line into field name and value, without the optional space before
// the value. The name of a comment is empty.
func field(line []byte) (name, value []byte) {
	name, value, _ = bytes.Cut(line, []byte(":"))
	return name, withoutMark(bytes.TrimPrefix(value, []byte(" ")))
}

func withoutMark(b []byte) []byte {
	if len(b) >= len(byteOrderMark) && b[0] == byteOrderMark[0] && string(b[:len(byteOrderMark)]) == byteOrderMark {
		return b[len(byteOrderMark):]
	}
	return b
}

// lineEnd returns the index of the first CR or LF, or -1.
func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf < 0 {
		lf = len(b)
	}
	if cr := bytes.IndexByte(b[:lf], '\r'); cr >= 0 {
		return cr
	}
	if lf == len(b) {
		return -1
	}
	return lf
}
