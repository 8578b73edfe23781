package server

import (
	"io"
	"strconv"
	"sync"
	"time"
)

// eventWriter writes a stream to its client without blocking the loop: the loop
// writes what the socket accepts in one system call. If that is not everything,
// a goroutine writes the rest as the client reads. Events are encoded only when
// written, so a slow client takes no memory; a client that reads next to
// nothing is disconnected.
type eventWriter struct {
	q *activeRequest

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
func (w *eventWriter) offer(tokens int, buf []byte) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.available = tokens
	if w.behind || w.stopped || w.broken {
		return buf
	}
	buf, chunk := w.next(buf)
	n, err := w.q.conn.tryWrite(chunk)
	switch {
	case err != nil:
		w.cutOff()
	case n < len(chunk) || w.written < w.available:
		w.behind = true
		go w.catchUp(append([]byte(nil), chunk[n:]...))
	case w.written == w.q.Output:
		w.end()
	}
	return buf
}

// next encodes the next chunk in buf and returns both: the events of available tokens, or
// fewer if they exceed a chunk, and the end of the stream after the last one. If no
// token is available yet, it has the events before the first. The caller holds the mutex.
func (w *eventWriter) next(buf []byte) (_, chunk []byte) {
	q, before, upTo := w.q, w.written, w.available
	if w.fault != nil {
		upTo = min(upTo, w.fault.before)
	}
	if q.stamped {
		q.stamp = q.server.stamp()
	}
	q.usage = usage{q.Prompt.Len(), q.Cached()} // known from the first token on
	buf = append(buf[:0], chunkRoom...)
	if w.available == 0 {
		buf = q.api.accepted.append(buf, &q.response)
	}
	for ; w.written < upTo && len(buf) < chunkLimit; w.written++ {
		buf = q.appendToken(buf, w.written)
	}
	ends := before < w.written && w.written == q.Output
	if ends {
		buf = q.appendEnd(buf)
	}
	return frameChunk(buf, ends)
}

// end is called after everything is written. The caller holds the mutex.
func (w *eventWriter) end() {
	w.q.conn.alreadyWritten = bodyEnd
	w.q.complete()
}

// catchUp writes the rest of a chunk and tokens that become available
// meanwhile.
func (w *eventWriter) catchUp(rest []byte) {
	var buf []byte
	c := w.q.conn
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.stopped && (len(rest) > 0 || w.written < w.available && !w.broken) {
		if f := w.fault; len(rest) == 0 && f != nil && w.written == f.before {
			w.mu.Unlock()
			instead, goesOn := w.q.strike(f)
			w.mu.Lock()
			rest, w.fault, w.broken = instead, nil, !goesOn
			continue
		}
		if len(rest) == 0 {
			buf, rest = w.next(buf)
		}
		w.mu.Unlock()
		piece := rest[:min(len(rest), slowPiece)]
		rest = rest[len(piece):]
		err := c.SetWriteDeadline(time.Now().Add(slowestWrite))
		if err == nil {
			_, err = c.Conn.Write(piece)
		}
		w.mu.Lock()
		if err != nil {
			w.cutOff()
		}
	}
	w.behind = false
	if w.stopped {
		return
	}
	c.SetWriteDeadline(time.Time{})
	if w.written == w.q.Output || w.broken {
		w.end()
	}
}

// stop stops writing.
func (w *eventWriter) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.fault != nil {
		close(w.fault.gone)
	}
}

// cutOff closes the connection, which the handler detects. The caller holds the
// mutex.
func (w *eventWriter) cutOff() {
	w.stopped = true
	w.q.conn.Close()
}

// eventStream is the body of a streamed answer for fasthttp. Passing events
// through fasthttp would wake up a goroutine for each. Instead, fasthttp sends
// the head and calls WriteTo, and the loop writes chunks directly to the
// connection until the answer is complete.
type eventStream struct{ *activeRequest }

// SupportsBodyWriteTo makes fasthttp call WriteTo.
func (eventStream) SupportsBodyWriteTo() bool { return true }

// WriteTo returns when the answer has been written. It writes nothing itself.
// After an error, fasthttp closes the connection.
func (e eventStream) WriteTo(io.Writer) (int64, error) { return 0, e.server.run(e.activeRequest) }

// Read is never called.
func (eventStream) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

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
