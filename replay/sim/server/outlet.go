package server

import (
	"sync"
	"time"
)

// outlet is the way of a stream to its client. The loop never waits for it:
// what the client's socket takes is with the kernel when the loop goes on,
// in one system call. Where it does not take everything a goroutine goes on
// as the client reads. It makes the events only then, so a client that is far
// behind takes no memory. One that reads next to nothing for too long is cut
// off.
type outlet struct {
	conn   *conn
	events events

	mu      sync.Mutex
	there   int  // tokens that the client may have
	sent    int  // tokens whose events are made
	behind  bool // a goroutine is writing
	stopped bool // the client gets no more
}

// events makes the events of an answer.
type events interface {
	// appendChunk appends to b chunkRoom and the events of the tokens from one
	// on and up to another, or fewer where they are too many for a chunk, and
	// returns how far it came.
	appendChunk(b []byte, from, upTo int) ([]byte, int)
	// complete says whether so many tokens are all.
	complete(tokens int) bool
	// end is called when everything is with the kernel. It is not if the client
	// is cut off, whose connection is closed then.
	end()
}

// slowest is how long a client that is behind may take for a piece of at most
// so many bytes.
const (
	slowest    = 30 * time.Second
	mostAtOnce = 8 << 10
)

// offer lets the client have so many tokens. The memory of buf is used, and
// returned to be used again.
func (o *outlet) offer(tokens int, buf []byte) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.there = tokens
	if o.behind || o.stopped {
		return buf
	}
	buf, chunk := o.next(buf)
	n, err := o.conn.tryWrite(chunk)
	switch {
	case err != nil:
		o.cutOff()
	case n < len(chunk) || o.sent < o.there:
		o.behind = true
		go o.catchUp(append([]byte(nil), chunk[n:]...))
	case o.events.complete(o.sent):
		o.end()
	}
	return buf
}

// next makes the next chunk in the memory of buf, which it returns. The end of
// the body goes along with the last: where many streams end at once, it would
// come milliseconds later, and who reads both together could not tell when the
// last token came. The caller holds the mutex.
func (o *outlet) next(buf []byte) (_, chunk []byte) {
	before := o.sent
	buf, o.sent = o.events.appendChunk(buf[:0], o.sent, o.there)
	buf, chunk = framed(buf)
	if before < o.sent && o.events.complete(o.sent) {
		buf = append(buf, bodyEnd...)
		chunk = buf[len(buf)-len(bodyEnd)-len(chunk):]
	}
	return buf, chunk
}

// end is for when everything is with the kernel. The caller holds the mutex.
func (o *outlet) end() {
	o.conn.unneeded = bodyEnd
	o.events.end()
}

// catchUp writes the rest of a chunk and what the client is behind.
func (o *outlet) catchUp(rest []byte) {
	var buf []byte
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.stopped && (len(rest) > 0 || o.sent < o.there) {
		if len(rest) == 0 {
			buf, rest = o.next(buf)
		}
		o.mu.Unlock()
		piece := rest[:min(len(rest), mostAtOnce)]
		rest = rest[len(piece):]
		err := o.conn.SetWriteDeadline(time.Now().Add(slowest))
		if err == nil {
			_, err = o.conn.Conn.Write(piece)
		}
		o.mu.Lock()
		if err != nil {
			o.cutOff()
		}
	}
	o.behind = false
	if o.stopped {
		return
	}
	o.conn.SetWriteDeadline(time.Time{})
	if o.events.complete(o.sent) {
		o.end()
	}
}

// stop has the client get no more.
func (o *outlet) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stopped = true
}

// cutOff closes the connection. Who listens to it notices. The caller holds the
// mutex.
func (o *outlet) cutOff() {
	o.stopped = true
	o.conn.Close()
}
