package server

import (
	"cmp"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// faultyStream writes a stream with a fault in a separate goroutine.
type faultyStream struct {
	fault     Fault
	random    *rand.Rand
	before    int // the fault happens before this token; -1: at every event
	generated atomic.Int64
	more      chan struct{} // signals that there may be more tokens
	gone      chan struct{} // closed when the answer is abandoned
}

func newFaultyStream(f Fault, output int, r *rand.Rand) *faultyStream {
	p := &faultyStream{fault: f, random: r, before: -1, more: make(chan struct{}, 1), gone: make(chan struct{})}
	switch f.Kind {
	case Stall, Reset, Truncate, Garbage, Broken:
		p.before = min(1+r.IntN(max(output-1, 1)), output-1)
	}
	return p
}

// offer is called by the loop with the total number of tokens.
func (p *faultyStream) offer(tokens int) {
	p.generated.Store(int64(tokens))
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// play writes the stream as far as the fault permits.
func (p *faultyStream) play(s *Server, q *activeRequest) {
	var b []byte
	for k := 0; k < q.Output; {
		together := max(p.fault.Count, 1)
		upTo := p.await(min(k+together, q.Output))
		switch {
		case upTo == 0:
			return
		case k == p.before && !p.strike(s, q):
			return
		case k < p.before:
			upTo = min(upTo, p.before)
		case p.fault.Kind == Merge:
			upTo = min(upTo, k+together)
		}
		b = b[:0]
		for stamp := s.stampAt(s.clock()); k < upTo; k++ {
			b = q.api.appendToken(b, &q.answer, k, q.usage(), stamp)
		}
		if k == q.Output {
			b = q.api.appendEnd(b, &q.answer, q.usage(), s.stampAt(s.clock()))
		}
		if !p.write(q.conn, b) {
			return
		}
	}
	q.complete()
}

// await waits for at least wanted tokens and returns the number available, or 0
// if the answer is abandoned.
func (p *faultyStream) await(wanted int) int {
	for {
		if n := int(p.generated.Load()); n >= wanted {
			return n
		}
		select {
		case <-p.more:
		case <-p.gone:
			return 0
		}
	}
}

// pause waits for d, or forever if d is 0. It returns false if the answer is
// abandoned.
func (p *faultyStream) pause(d time.Duration) bool {
	select {
	case <-time.After(cmp.Or(d, forever)):
		return true
	case <-p.gone:
		return false
	}
}

// strike triggers the fault and reports whether the stream continues.
func (p *faultyStream) strike(s *Server, q *activeRequest) bool {
	switch p.fault.Kind {
	case Reset:
		q.conn.reset()
		return false
	case Truncate:
		q.conn.Close()
		return false
	case Stall:
		return p.pause(p.fault.Time)
	case Broken:
		if _, err := q.conn.Write(chunkOf(q.api.appendError(nil, &q.answer, serverError(), s.stampAt(s.clock())))); err == nil {
			q.complete()
		}
		return false
	case Garbage:
		_, err := q.conn.Write(chunkOf([]byte(garbage)))
		return err == nil
	}
	return true
}

// garbage is an event that is neither JSON nor text.
const garbage = "data: {\"choices\":[{\"index\":0,\"te\xff\xfe\x00]]\n\n"

// write writes events in pieces determined by the fault.
func (p *faultyStream) write(w io.Writer, b []byte) bool {
	switch p.fault.Kind {
	case Drip:
		const piece = 16 // bytes
		for chunk := chunkOf(b); len(chunk) > 0; chunk = chunk[min(piece, len(chunk)):] {
			if _, err := w.Write(chunk[:min(piece, len(chunk))]); err != nil || !p.pause(p.fault.Time) {
				return false
			}
		}
		return true
	case Split:
		for len(b) > 1 {
			n := 1 + p.random.IntN(len(b)-1)
			if _, err := w.Write(chunkOf(b[:n])); err != nil {
				return false
			}
			b = b[n:]
		}
	}
	_, err := w.Write(chunkOf(b))
	return err == nil
}

func chunkOf(b []byte) []byte {
	_, chunk := frameChunk(append([]byte(chunkRoom), b...))
	return chunk
}
