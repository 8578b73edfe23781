package openai

import (
	"bytes"
	"errors"
)

// maxEvent bounds one server-sent event in bytes.
const maxEvent = 16 << 20

// keepSmall is the room that is kept from one event to the next.
const keepSmall = 4 << 10

var errEventTooLong = errors.New("an event is longer than 16 MiB")

// eventCutter cuts a byte stream into server-sent events (WHATWG HTML, section
// 9.2), wherever the network cut it. Lines end in LF, CRLF or CR; data lines of
// one event are joined with LF; comments and other fields are passed over. It
// keeps the bytes of an event that has not ended, and between events next to
// nothing.
//
// An event that is named error is a serverError, whatever its data, and also
// without: Dynamo says in a comment what went wrong. So is one of a field of
// that name, which llama.cpp sent until late 2025. Both go on to [DONE] as if
// all were well.
type eventCutter struct {
	line    []byte // that has not ended
	data    []byte // of the event that has not ended
	comment []byte // of an event that is an error
	hasData bool
	failed  bool // the event is an error
	afterCR bool // the last line ended in CR: an LF that follows belongs to it
	given   bool // data was returned
}

// next returns the data of the first event that ends in b, valid until the
// following call, and what of b lies behind it. Where no event ends in b, ok
// is false and all of b has been taken in. Nothing can be cut behind an error.
func (e *eventCutter) next(b []byte) (data, rest []byte, ok bool, err error) {
	if e.given {
		e.given, e.hasData = false, false
		e.data = kept(e.data)
	}
	for {
		if e.afterCR && len(b) > 0 {
			e.afterCR = false
			if b[0] == '\n' {
				b = b[1:]
			}
		}
		if len(e.line) == 0 && !e.hasData && !e.failed {
			if data, rest, ok := wholeEvent(b); ok {
				return data, rest, true, nil
			}
		}
		end := lineEnd(b)
		if end < 0 {
			return nil, nil, false, e.keep(b)
		}
		line := b[:end]
		e.afterCR = b[end] == '\r'
		b = b[end+1:]
		if len(e.line) > 0 {
			e.line = append(e.line, line...)
			line = e.line
			e.line = kept(e.line)
		}
		switch {
		case len(line) > 0:
			if err := e.takeLine(line); err != nil {
				return nil, b, false, err
			}
		case e.failed:
			return nil, b, false, e.failure()
		case e.hasData:
			e.given = true
			return e.data, b, true, nil
		}
	}
}

// wholeEvent is the case of nearly all events: b begins with one data line and
// the empty line that ends the event. Nothing is copied.
func wholeEvent(b []byte) (data, rest []byte, ok bool) {
	const field = "data: "
	if len(b) < len(field) || string(b[:len(field)]) != field {
		return nil, nil, false
	}
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return nil, nil, false
	}
	data, rest = b[len(field):end], b[end+1:]
	switch {
	case len(rest) > 0 && rest[0] == '\n':
		rest = rest[1:]
	case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n' && len(data) > 0 && data[len(data)-1] == '\r':
		data, rest = data[:len(data)-1], rest[2:]
	default:
		return nil, nil, false
	}
	return data, rest, bytes.IndexByte(data, '\r') < 0
}

// takeLine takes a line that is not empty.
func (e *eventCutter) takeLine(line []byte) error {
	switch name, value := fieldOf(line); string(name) {
	case "event":
		e.failed = e.failed || string(value) == "error"
	case "":
		if room := maxAside - len(e.comment); e.failed && room > 0 {
			e.comment = append(append(e.comment, ' '), value[:min(len(value), room)]...)
		}
	case "error":
		e.failed = true
		return e.takeData(value)
	case "data":
		return e.takeData(value)
	}
	return nil
}

func (e *eventCutter) takeData(value []byte) error {
	if e.hasData {
		e.data = append(e.data, '\n')
	}
	if e.data = append(e.data, value...); len(e.data) > maxEvent {
		return errEventTooLong
	}
	e.hasData = true
	return nil
}

// failure is the error that an event tells of, nil where it is none. What its
// data says goes before its comment.
func (e *eventCutter) failure() error {
	if !e.failed {
		return nil
	}
	if message, ok := saidInError(e.data); ok {
		return serverError{message}
	}
	if comment := bytes.TrimSpace(e.comment); len(comment) > 0 {
		return serverError{string(comment)}
	}
	return serverError{"an event that is an error: " + string(e.data)}
}

// keep takes in what has no line end.
func (e *eventCutter) keep(b []byte) error {
	if e.line = append(e.line, b...); len(e.line) > maxEvent {
		return errEventTooLong
	}
	return nil
}

// end returns the data of an event that the end of the stream ends. There is
// none, as the standard asks, but for a [DONE] on a last line of its own.
func (e *eventCutter) end() (data []byte, ok bool) {
	value, isData := dataOf(e.line)
	if isData && string(value) == done {
		return value, !e.hasData
	}
	return e.data, e.hasData && string(e.data) == done
}

// kept is the room of b, emptied, unless it is large.
func kept(b []byte) []byte {
	if cap(b) > keepSmall {
		return nil
	}
	return b[:0]
}

// dataOf returns the value of a data line.
func dataOf(line []byte) (value []byte, ok bool) {
	name, value := fieldOf(line)
	return value, string(name) == "data"
}

// fieldOf cuts a line into the name of a field and its value, less the one
// space that may lead it. The name of a comment is empty.
func fieldOf(line []byte) (name, value []byte) {
	name, value, _ = bytes.Cut(line, []byte(":"))
	return name, bytes.TrimPrefix(value, []byte(" "))
}

// lineEnd finds the first line end.
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
