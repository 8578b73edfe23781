package openai

import (
	"bytes"
	"errors"
	"io"
)

// maxEvent bounds one server-sent event in bytes.
const maxEvent = 16 << 20

var errEventTooLong = errors.New("an event is longer than 16 MiB")

// eventReader cuts a byte stream into server-sent events (WHATWG HTML, section
// 9.2), wherever the network cut it. Lines end in LF, CRLF or CR; data lines of
// one event are joined with LF; comments and other fields are passed over.
type eventReader struct {
	in         io.Reader
	buf        []byte // buf[at:] has been read and not yet been looked at
	at         int
	data       []byte // of the event being read
	hasData    bool
	afterCR    bool // the last line ended in CR: an LF that follows belongs to it
	exhausted  bool
	readFailed error
}

func newEventReader(in io.Reader) *eventReader {
	return &eventReader{in: in, buf: make([]byte, 0, 4096)}
}

// next returns the data of the next event that has any, valid until the
// following call. At the end of the stream it returns io.EOF, and drops an
// event that was not finished by an empty line, as the standard asks; only a
// [DONE] on a last line of its own is taken without one.
func (e *eventReader) next() ([]byte, error) {
	if e.hasData {
		e.data, e.hasData = e.data[:0], false
	}
	for {
		line, err := e.line()
		if err != nil {
			if e.hasData && string(e.data) == done {
				return e.data, nil
			}
			return nil, err
		}
		if len(line) == 0 {
			if e.hasData {
				return e.data, nil
			}
			continue
		}
		value, isData := dataOf(line)
		if !isData {
			continue
		}
		if e.hasData {
			e.data = append(e.data, '\n')
		}
		if e.data = append(e.data, value...); len(e.data) > maxEvent {
			return nil, errEventTooLong
		}
		e.hasData = true
	}
}

// dataOf returns the value of a data line, less the one space that may lead it.
func dataOf(line []byte) (value []byte, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte("data"))
	if !ok || len(rest) > 0 && rest[0] != ':' {
		return nil, false
	}
	rest = bytes.TrimPrefix(rest, []byte(":"))
	return bytes.TrimPrefix(rest, []byte(" ")), true
}

// line returns the next line without its end. The last line of the stream is
// returned even if it was not ended, which next knows how to judge.
func (e *eventReader) line() ([]byte, error) {
	searched := 0
	for {
		if e.afterCR && e.at < len(e.buf) {
			e.afterCR = false
			if e.buf[e.at] == '\n' {
				e.at++
			}
		}
		rest := e.buf[e.at:]
		if end := lineEnd(rest, searched); end >= 0 {
			e.at += end + 1
			e.afterCR = rest[end] == '\r'
			return rest[:end], nil
		}
		if e.exhausted {
			if len(rest) > 0 && isDoneLine(rest) {
				e.at = len(e.buf)
				return rest, nil
			}
			return nil, e.readFailed
		}
		if searched = len(rest); searched > maxEvent {
			return nil, errEventTooLong
		}
		e.fill()
	}
}

func isDoneLine(line []byte) bool {
	value, ok := dataOf(line)
	return ok && string(value) == done
}

// lineEnd finds the first line end at or after from.
func lineEnd(b []byte, from int) int {
	lf := bytes.IndexByte(b[from:], '\n')
	if lf < 0 {
		lf = len(b) - from
	}
	if cr := bytes.IndexByte(b[from:from+lf], '\r'); cr >= 0 {
		return from + cr
	}
	if from+lf == len(b) {
		return -1
	}
	return from + lf
}

// fill reads once. What has been looked at makes room first.
func (e *eventReader) fill() {
	if e.at > 0 {
		e.buf = e.buf[:copy(e.buf, e.buf[e.at:])]
		e.at = 0
	}
	if len(e.buf) == cap(e.buf) {
		e.buf = append(e.buf, 0)[:len(e.buf)]
	}
	n, err := e.in.Read(e.buf[len(e.buf):cap(e.buf)])
	e.buf = e.buf[:len(e.buf)+n]
	if err != nil {
		e.exhausted, e.readFailed = true, err
	}
}
