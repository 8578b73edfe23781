package http1

import (
	"errors"
	"io"
)

// ErrChunked reports a malformed chunked body.
var ErrChunked = errors.New("malformed chunked encoding")

const (
	maxTrailers  = 64
	maxChunkLine = 8 << 10 // bytes in a chunk's first line or in a trailer line
)

// body removes the framing from a body (RFC 9112, sections 6 and 7). It buffers
// nothing, wherever the pieces are cut.
type body struct {
	at   bodyPart // where the next byte is
	left int64    // bytes left in the chunk, or in the body if its length is known
	// State of the current line, if at is in a line.
	line   int  // bytes so far
	digits bool // a chunk size has begun
	blank  bool // a blank followed the size
	cr     bool // the last byte was CR

	trailers int
}

type bodyPart uint8

const (
	untilClose bodyPart = iota
	inLength
	inChunkSize
	inExtension
	inChunk
	afterChunk // the line end after the data
	inTrailer
	afterBody
)

// newBody takes the length that fasthttp reports: -1 means chunked, less means
// until the connection ends.
func newBody(contentLength int) body {
	switch {
	case contentLength == -1:
		return body{at: inChunkSize}
	case contentLength < -1:
		return body{at: untilClose}
	case contentLength == 0:
		return body{at: afterBody}
	}
	return body{at: inLength, left: int64(contentLength)}
}

// next returns the first piece of data in b and the rest of b. If there is no
// data, b is used up unless err is io.EOF, the end of the body, or ErrChunked.
func (f *body) next(b []byte) (data, rest []byte, err error) {
	for {
		switch f.at {
		case untilClose:
			return b, nil, nil
		case afterBody:
			return nil, b, io.EOF
		case inLength, inChunk:
			n := min(int64(len(b)), f.left)
			if f.left -= n; f.left == 0 {
				f.endData()
			}
			if n > 0 {
				return b[:n], b[n:], nil
			}
		default:
			if b, err = f.readLine(b); err != nil {
				return nil, b, err
			}
		}
		if len(b) == 0 && f.at != afterBody {
			return nil, nil, nil
		}
	}
}

func (f *body) endData() {
	if f.at == inLength {
		f.at = afterBody
		return
	}
	f.at, f.line, f.cr = afterChunk, 0, false
}

// readLine consumes a line of the framing, up to its end.
func (f *body) readLine(b []byte) (rest []byte, err error) {
	for i, c := range b {
		if c == '\n' {
			return b[i+1:], f.endLine()
		}
		if f.line++; f.line >= maxChunkLine || !f.lineByte(c) {
			return b[i:], ErrChunked
		}
	}
	return nil, nil
}

// lineByte consumes a byte of a line and reports whether it is allowed. A CR is
// allowed only at the end of a line, so the byte after it decides.
func (f *body) lineByte(c byte) bool {
	afterCR := f.cr
	f.cr = c == '\r'
	switch f.at {
	case afterChunk:
		return f.cr && !afterCR
	case inChunkSize:
		return !afterCR && (f.cr || f.sizeByte(c))
	}
	return true
}

func (f *body) sizeByte(c byte) bool {
	digit := int64(-1)
	switch {
	case '0' <= c && c <= '9':
		digit = int64(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		digit = int64(c|0x20-'a') + 10
	case c == ';':
		f.at = inExtension // ignored
		return f.digits
	case c == ' ' || c == '\t':
		f.blank = true
		return true
	}
	if digit < 0 || f.blank || f.left >= 1<<59 {
		return false
	}
	f.digits = true
	f.left = f.left<<4 | digit
	return true
}

func (f *body) endLine() error {
	empty := f.line == 0 || f.line == 1 && f.cr
	f.line, f.cr = 0, false
	switch f.at {
	case afterChunk:
		f.at = inChunkSize
	case inChunkSize, inExtension:
		if !f.digits {
			return ErrChunked
		}
		f.digits, f.blank = false, false
		f.at = inChunk
		if f.left == 0 {
			f.at = inTrailer
		}
	case inTrailer:
		if f.trailers++; empty {
			f.at = afterBody
		} else if f.trailers >= maxTrailers {
			return ErrChunked
		}
	}
	return nil
}

// end returns the error for the end of the connection: io.EOF if the body may end
// here.
func (f *body) end(err error) error {
	if err == io.EOF && f.at != untilClose && f.at != afterBody {
		return io.ErrUnexpectedEOF
	}
	return err
}
