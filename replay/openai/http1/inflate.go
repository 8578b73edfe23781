package http1

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/klauspost/compress/gzip"
)

// ErrEncoding reports a body that is not what its Content-Encoding says.
var ErrEncoding = errors.New("malformed gzip encoding")

// Inflater decodes a gzip body whose pieces arrive one by one. The library's decoder
// reads its input, so it runs as a coroutine that stops whenever it needs more. It
// passes on what the sender has flushed, and keeps the 32 KiB of the format's window
// and its tables, however large the body is. It is not safe for concurrent use.
//
//	z.Feed(piece)
//	for decoded, err := z.Next(); len(decoded) > 0; decoded, err = z.Next() { ... }
type Inflater struct {
	input []byte
	ended bool // no more input follows
	err   error
	pull  func() (piece []byte, more bool)
	stop  func()
	yield func([]byte) bool
}

// NewInflater returns a decoder of one body. Close must be called.
func NewInflater() *Inflater {
	z := new(Inflater)
	z.pull, z.stop = iter.Pull(z.decode)
	return z
}

// decode is the coroutine. It yields decoded pieces, and nil when it needs input.
func (z *Inflater) decode(yield func([]byte) bool) {
	z.yield = yield
	reader, err := gzip.NewReader(z)
	for buf := make([]byte, readSize); err == nil; {
		var n int
		if n, err = reader.Read(buf); n > 0 && !yield(buf[:n]) {
			return
		}
	}
	z.err = err
}

var errStopped = errors.New("stopped")

// fill waits for input.
func (z *Inflater) fill() error {
	for len(z.input) == 0 {
		switch {
		case z.ended:
			return io.EOF
		case !z.yield(nil):
			return errStopped
		}
	}
	return nil
}

// Read implements io.Reader.
func (z *Inflater) Read(p []byte) (int, error) {
	if err := z.fill(); err != nil {
		return 0, err
	}
	n := copy(p, z.input)
	z.input = z.input[n:]
	return n, nil
}

// ReadByte implements io.ByteReader. Without it the decoder would read ahead.
func (z *Inflater) ReadByte() (byte, error) {
	if err := z.fill(); err != nil {
		return 0, err
	}
	b := z.input[0]
	z.input = z.input[1:]
	return b, nil
}

// Feed gives the next piece of the body. The decoder refers to it until it needs more.
func (z *Inflater) Feed(piece []byte) { z.input = piece }

// End says that no more pieces follow.
func (z *Inflater) End() { z.ended = true }

// Close releases the decoder.
func (z *Inflater) Close() { z.stop() }

// Next returns the next decoded piece of the input, nil if more input is needed. err
// is io.EOF at the end of a complete body.
func (z *Inflater) Next() (piece []byte, err error) {
	piece, more := z.pull()
	switch {
	case more:
		return piece, nil
	case z.err == io.EOF:
		return nil, io.EOF
	}
	return nil, fmt.Errorf("%w: %w", ErrEncoding, z.err)
}
