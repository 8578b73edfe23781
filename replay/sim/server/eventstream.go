package server

import "io"

// eventStream is the body of a streamed answer, as fasthttp sees it. Passing the
// events through fasthttp would cost the wake-up of a goroutine each. Instead,
// when fasthttp has sent the head it asks the body to write itself, and the loop
// writes chunks straight to the connection until the answer is complete.
type eventStream struct {
	server *Server
	q      *activeRequest
}

// SupportsBodyWriteTo makes fasthttp call WriteTo.
func (eventStream) SupportsBodyWriteTo() bool { return true }

// WriteTo returns when the answer has been written, or an error, after which
// fasthttp closes the connection. It writes nothing itself.
func (e eventStream) WriteTo(io.Writer) (int64, error) { return 0, e.server.run(e.q) }

// Read is never called.
func (eventStream) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// chunkLimit is about how many bytes of events go into one chunk.
const chunkLimit = 64 << 10

// appendChunk appends chunkRoom and the events of tokens from..upTo, fewer if
// they are too many for a chunk, and with the last token the end of the stream.
// It returns the token after them.
func (q *activeRequest) appendChunk(b []byte, from, upTo int) ([]byte, int) {
	var stamp int64
	if q.stamped {
		stamp = q.server.stampAt(q.server.clock())
	}
	b = append(b, chunkRoom...)
	k, u := from, q.usage()
	for ; k < upTo && len(b) < chunkLimit; k++ {
		b = q.appendToken(b, k, u, stamp)
	}
	if k == q.Output && from < k {
		b = q.appendEnd(b, u, stamp)
	}
	return b, k
}

const (
	// chunkRoom is the space for the size of a chunk, before its data.
	chunkRoom = "00000000\r\n"
	// bodyEnd ends a chunked body.
	bodyEnd = "0\r\n\r\n"
)

// frameChunk makes a chunk of the data behind chunkRoom in b. It returns b, to
// which it appends, and the chunk in it: nothing if there is no data, since an
// empty chunk ends the body.
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
