package server

import (
	"io"
	"strconv"
	"sync"
	"time"
)

// stream is a response that is written without blocking the loop: the loop
// writes what the socket accepts in one system call. If that is not everything,
// a goroutine writes the rest as the client reads. Events are encoded only when
// written, so a slow client takes no memory; a client that reads next to
// nothing is disconnected.
type stream struct {
	streamed  bool
	mu        sync.Mutex
	available int           // tokens that may be written
	written   int           // tokens whose events were encoded
	behind    bool          // a goroutine is writing
	stopped   bool          // no more writes
	broken    bool          // no more tokens, because of a fault
	fault     *pendingFault // nil if there is none to come
}

// A slow client may take at most this long for this many bytes.
const (
	slowestWrite = 30 * time.Second
	slowPiece    = 8 << 10
)

// offer makes tokens available for writing. It returns buf, which is scratch
// memory.
func (q *activeRequest) offer(tokens int, buf []byte) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.available = tokens
	if q.behind || q.stopped || q.broken {
		return buf
	}
	buf, chunk := q.next(buf)
	n, err := q.conn.tryWrite(chunk)
	switch {
	case err != nil:
		q.cutOff()
	case n < len(chunk) || q.written < q.available:
		q.behind = true
		go q.catchUp(append([]byte(nil), chunk[n:]...))
	case q.written == q.Output:
		q.end()
	}
	return buf
}

// next encodes the next chunk in buf and returns both: the events of available tokens, or
// fewer if they exceed a chunk, and the end of the stream after the last one. If no
// token is available yet, it has the events before the first. The caller holds the mutex.
func (q *activeRequest) next(buf []byte) (_, chunk []byte) {
	before, upTo := q.written, q.available
	if q.fault != nil {
		upTo = min(upTo, q.fault.before)
	}
	if q.stamped {
		q.stamp = q.server.stamp()
	}
	q.promptTokens, q.cachedTokens = q.Prompt.Len(), q.Cached()
	buf = append(buf[:0], chunkRoom...)
	if q.available == 0 {
		buf = q.api.accepted.append(buf, &q.response)
	}
	for ; q.written < upTo && len(buf) < chunkLimit; q.written++ {
		buf = q.appendToken(buf, q.written)
	}
	ends := before < q.written && q.written == q.Output
	if ends {
		buf = q.appendEnd(buf)
	}
	return frameChunk(buf, ends)
}

// end is called after everything is written. The caller holds the mutex.
func (q *activeRequest) end() {
	q.conn.alreadyWritten = bodyEnd
	q.complete()
}

// catchUp writes the rest of a chunk and tokens that become available
// meanwhile.
func (q *activeRequest) catchUp(rest []byte) {
	var buf []byte
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.stopped && (len(rest) > 0 || q.written < q.available && !q.broken) {
		if f := q.fault; len(rest) == 0 && f != nil && q.written == f.before {
			q.mu.Unlock()
			instead, goesOn := q.strike(f)
			q.mu.Lock()
			rest, q.fault, q.broken = instead, nil, !goesOn
			continue
		}
		if len(rest) == 0 {
			buf, rest = q.next(buf)
		}
		q.mu.Unlock()
		piece := rest[:min(len(rest), slowPiece)]
		rest = rest[len(piece):]
		err := q.conn.SetWriteDeadline(time.Now().Add(slowestWrite))
		if err == nil {
			_, err = q.conn.Conn.Write(piece)
		}
		q.mu.Lock()
		if err != nil {
			q.cutOff()
		}
	}
	q.behind = false
	if q.stopped {
		return
	}
	q.conn.SetWriteDeadline(time.Time{})
	if q.written == q.Output || q.broken {
		q.end()
	}
}

// stop stops writing.
func (q *activeRequest) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
	if q.fault != nil {
		close(q.fault.gone)
	}
}

// cutOff closes the connection, which the handler detects. The caller holds the
// mutex.
func (q *activeRequest) cutOff() {
	q.stopped = true
	q.conn.Close()
}

// WriteTo makes a request in flight the body of a response for fasthttp: it returns when
// the response has been written. It writes nothing itself, since passing events
// through fasthttp would wake up a goroutine for each: fasthttp sends
// the head, and the loop writes chunks directly to the connection. After an error, fasthttp
// closes the connection.
func (q *activeRequest) WriteTo(io.Writer) (int64, error) { return 0, q.server.run(q) }

// SupportsBodyWriteTo makes fasthttp call WriteTo, and never Read.
func (*activeRequest) SupportsBodyWriteTo() bool { return true }

func (*activeRequest) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

const (
	// chunkLimit is the approximate maximum size of a chunk in bytes.
	chunkLimit = 64 << 10
	// chunkRoom reserves space for the size of a chunk in front of its data.
	chunkRoom = "00000000\r\n"
	// bodyEnd ends a chunked body.
	bodyEnd = "0\r\n\r\n"
)

// frameChunk frames the data after chunkRoom in b as a chunk. It returns b, to
// which it appends, and the chunk in it, which is empty if there is no data,
// since an empty chunk would end the body. The end of the body is sent with the last
// event: if many streams end at once it would arrive milliseconds later, and a client that
// reads both together could not measure the time of the last token.
func frameChunk(b []byte, last bool) (buf, chunk []byte) {
	n := len(b) - len(chunkRoom)
	if n == 0 {
		return b, nil
	}
	var digits [8]byte
	size := strconv.AppendUint(digits[:0], uint64(n), 16)
	start := len(chunkRoom) - len("\r\n") - len(size)
	copy(b[start:], size)
	if b = append(b, "\r\n"...); last {
		b = append(b, bodyEnd...)
	}
	return b, b[start:]
}

// chunkOf returns data as a chunk.
func chunkOf(data []byte, last bool) []byte {
	_, chunk := frameChunk(append([]byte(chunkRoom), data...), last)
	return chunk
}
