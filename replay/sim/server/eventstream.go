package server

import "io"

// eventStream is the body of a streamed answer for fasthttp. Passing events
// through fasthttp would wake up a goroutine for each. Instead, fasthttp sends
// the head and calls WriteTo, and the loop writes chunks directly to the
// connection until the answer is complete.
type eventStream struct {
	server *Server
	q      *activeRequest
}

// SupportsBodyWriteTo makes fasthttp call WriteTo.
func (eventStream) SupportsBodyWriteTo() bool { return true }

// WriteTo returns when the answer has been written. It writes nothing itself.
// After an error, fasthttp closes the connection.
func (e eventStream) WriteTo(io.Writer) (int64, error) { return 0, e.server.run(e.q) }

// Read is never called.
func (eventStream) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// chunkLimit is the approximate maximum size of a chunk in bytes.
const chunkLimit = 64 << 10

// appendChunk appends chunkRoom, the events of tokens from..upTo, or fewer if
// they exceed a chunk, and after the last token the end of the stream. It
// returns the index of the next token.
func (q *activeRequest) appendChunk(b []byte, from, upTo int) ([]byte, int) {
	var stamp int64
	if q.stamped {
		stamp = q.server.stampAt(q.server.clock())
	}
	b = append(b, chunkRoom...)
	k, u := from, q.usage()
	for ; k < upTo && len(b) < chunkLimit; k++ {
		b = q.api.appendToken(b, &q.answer, k, u, stamp)
	}
	if k == q.Output && from < k {
		b = q.api.appendEnd(b, &q.answer, u, stamp)
	}
	return b, k
}

const (
	// chunkRoom reserves space for the size of a chunk in front of its data.
	chunkRoom = "00000000\r\n"
	// bodyEnd ends a chunked body.
	bodyEnd = "0\r\n\r\n"
)

// frameChunk frames the data after chunkRoom in b as a chunk. It returns b, to
// which it appends, and the chunk in it, which is empty if there is no data,
// since an empty chunk would end the body.
func frameChunk(b []byte) (buf, chunk []byte) {
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
