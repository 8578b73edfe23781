package server

import "io"

// eventStream is the body of a streamed answer. Its events do not pass through
// the HTTP server, which would cost a goroutine's wake-up each: when the server
// has sent the headers it asks the body to write itself, and the loop writes
// chunks straight to the connection until the answer is complete. The server
// then ends the body and waits for the connection's next request.
type eventStream struct {
	server *Server
	flight *flight
}

// SupportsBodyWriteTo has the HTTP server call WriteTo.
func (eventStream) SupportsBodyWriteTo() bool { return true }

// WriteTo returns when the answer has been written, or an error, after which
// the connection is closed. It writes nothing itself.
func (e eventStream) WriteTo(io.Writer) (int64, error) { return 0, e.server.fly(e.flight) }

// Read is never called.
func (eventStream) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// mostInChunk is about how many bytes of events are put into one chunk.
const mostInChunk = 64 << 10

// appendChunk appends a chunk with the events of tokens, and of the end after
// the last. The memory before it is used, too.
func (f *flight) appendChunk(b []byte, from, upTo int) ([]byte, int) {
	var stamp int64
	if f.stamped {
		stamp = f.server.stampAt(f.server.clock())
	}
	b = append(b, chunkRoom...)
	k, u := from, f.usage()
	for ; k < upTo && len(b) < mostInChunk; k++ {
		b = f.appendToken(b, k, u, stamp)
	}
	if k == f.Output && from < k {
		b = f.appendEnd(b, u, stamp)
	}
	return b, k
}

func (f *flight) complete(tokens int) bool { return tokens == f.Output }

// end wakes who waits for the answer.
func (f *flight) end() {
	f.conn.interrupt()
	close(f.ended)
}

// chunkRoom is the room before a chunk's data for its size and a line end.
const chunkRoom = "00000000\r\n"

// framed makes b, whose data begins after chunkRoom, a chunk. It returns b, to
// which it appends, and the chunk in it: nothing where there is no data, for
// that would end the body.
func framed(b []byte) (buf, chunk []byte) {
	const digits = "0123456789abcdef"
	n := len(b) - len(chunkRoom)
	if n == 0 {
		return b, nil
	}
	i := len(chunkRoom) - 2
	for ; n > 0; n >>= 4 {
		i--
		b[i] = digits[n&15]
	}
	b = append(b, '\r', '\n')
	return b, b[i:]
}
