package openai

import (
	"errors"
	"io"
)

// errChunk is a body that says it is chunked and is not.
var errChunk = errors.New("malformed chunked encoding")

const (
	// maxTrailer bounds the lines behind the last chunk.
	maxTrailer = 64
	// maxChunkLine bounds each line of the encoding, in bytes.
	maxChunkLine = 8 << 10
)

// framing takes the framing off a body: it tells the body's bytes from those
// that say where it ends. It keeps no bytes, wherever the network cut them.
type framing struct {
	part  framePart
	left  int64 // of the chunk, or of the body where its length was announced
	line  int   // bytes of the line so far
	lines int   // of the trailer
	// Of a chunk's size.
	digits bool // there was one
	blank  bool // there was a blank behind them
	cr     bool // the last byte was a CR
}

// framePart is where in a body the next byte is.
type framePart uint8

const (
	untilClose framePart = iota
	inSized
	inSize // of a chunk: its first line
	inExtension
	midChunk
	behindChunk // its line end
	inTrailer
	behindBody
)

// newFraming frames a body by the length in its header: -1 is chunked, and
// less is until the connection closes.
func newFraming(contentLength int) framing {
	switch {
	case contentLength == -1:
		return framing{part: inSize}
	case contentLength < -1:
		return framing{part: untilClose}
	case contentLength == 0:
		return framing{part: behindBody}
	}
	return framing{part: inSized, left: int64(contentLength)}
}

// next returns the bytes of the body that b begins with, and what lies behind
// them. Where there are none, all of b is used up, or the body ended, which is
// io.EOF, or it is malformed.
func (f *framing) next(b []byte) (data, rest []byte, err error) {
	for {
		switch f.part {
		case untilClose:
			return b, nil, nil
		case behindBody:
			return nil, b, io.EOF
		case inSized, midChunk:
			n := min(int64(len(b)), f.left)
			if f.left -= n; f.left == 0 {
				f.endPart()
			}
			if n > 0 {
				return b[:n], b[n:], nil
			}
		default:
			if b, err = f.control(b); err != nil {
				return nil, b, err
			}
		}
		if len(b) == 0 && f.part != behindBody {
			return nil, nil, nil
		}
	}
}

func (f *framing) endPart() {
	if f.part == inSized {
		f.part = behindBody
		return
	}
	f.part, f.line, f.cr = behindChunk, 0, false
}

// control takes bytes that are not the body's, up to the end of a line.
func (f *framing) control(b []byte) (rest []byte, err error) {
	for i, c := range b {
		if c == '\n' {
			return b[i+1:], f.endLine()
		}
		if f.line++; f.line >= maxChunkLine || !f.take(c) {
			return b[i:], errChunk
		}
	}
	return nil, nil
}

// take takes a byte of a line. It reports whether the byte can be there. A CR
// is part of the line's end if it is the last, so it is judged by what follows.
func (f *framing) take(c byte) bool {
	afterCR := f.cr
	f.cr = c == '\r'
	switch f.part {
	case behindChunk:
		return f.cr && !afterCR
	case inSize:
		return !afterCR && (f.cr || f.sizeByte(c))
	}
	return true
}

func (f *framing) sizeByte(c byte) bool {
	digit := int64(-1)
	switch {
	case '0' <= c && c <= '9':
		digit = int64(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		digit = int64(c|0x20-'a') + 10
	case c == ';':
		f.part = inExtension // it means nothing here
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

// endLine acts on a line that ended.
func (f *framing) endLine() error {
	empty := f.line == 0 || f.line == 1 && f.cr
	f.line, f.cr = 0, false
	switch f.part {
	case behindChunk:
		f.part = inSize
	case inSize, inExtension:
		if !f.digits {
			return errChunk
		}
		f.digits, f.blank = false, false
		f.part = midChunk
		if f.left == 0 {
			f.part = inTrailer
		}
	case inTrailer:
		if f.lines++; empty {
			f.part = behindBody
		} else if f.lines >= maxTrailer {
			return errChunk
		}
	}
	return nil
}

// end is what the end of the connection is to the body: io.EOF where it may
// end there.
func (f *framing) end(err error) error {
	if err == io.EOF && f.part != untilClose && f.part != behindBody {
		return io.ErrUnexpectedEOF
	}
	return err
}
