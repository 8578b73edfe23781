package openai

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
)

// errChunk is a body that says it is chunked and is not.
var errChunk = errors.New("malformed chunked encoding")

// maxTrailer bounds the lines behind the last chunk.
const maxTrailer = 64

// chunkedBody takes the chunked encoding off a body. A read returns what has
// arrived of one chunk and never waits for more: fasthttp's reader waits for
// the end of a chunk, and the standard library's, between two chunks, for the
// data of the second. It reads past the trailer, so that the connection is at
// the beginning of the next answer.
type chunkedBody struct {
	in   *bufio.Reader
	left int64 // of the current chunk
	some bool  // there was a chunk, whose line end is yet to be read
	err  error
}

func (b *chunkedBody) Read(p []byte) (n int, err error) {
	if b.left == 0 && b.err == nil {
		b.left, b.err = b.nextChunk()
	}
	if b.err != nil {
		return 0, b.err
	}
	n, b.err = b.in.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	b.err = unexpected(b.err)
	return n, b.err
}

// nextChunk returns the size of the next chunk, or io.EOF behind the last.
func (b *chunkedBody) nextChunk() (size int64, err error) {
	if b.some {
		switch line, err := b.line(); {
		case err != nil:
			return 0, err
		case len(line) > 0:
			return 0, errChunk
		}
	}
	b.some = true
	line, err := b.line()
	if err != nil {
		return 0, err
	}
	digits, _, _ := bytes.Cut(line, []byte(";")) // an extension means nothing here
	n, err := strconv.ParseUint(string(bytes.TrimRight(digits, " \t")), 16, 63)
	if err != nil {
		return 0, errChunk
	}
	if n > 0 {
		return int64(n), nil
	}
	for range maxTrailer {
		line, err := b.line()
		if err != nil {
			return 0, err
		}
		if len(line) == 0 {
			return 0, io.EOF
		}
	}
	return 0, errChunk
}

// line returns a line without its end.
func (b *chunkedBody) line() ([]byte, error) {
	line, err := b.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, errChunk
	}
	if err != nil {
		return nil, unexpected(err)
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

// sizedBody is a body whose length was announced.
type sizedBody struct {
	in   *bufio.Reader
	left int64
}

func (b *sizedBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.in.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, unexpected(err)
}

// unexpected is what an end inside a body is.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
