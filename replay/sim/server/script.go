package server

import (
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// script is a stream with which something goes wrong. A goroutine of its own
// plays it.
type script struct {
	fault  Fault
	random *rand.Rand
	strike int // the token before which it happens, where there is one
	there  atomic.Int64
	more   chan struct{} // has an element when there may be more tokens
	gone   chan struct{} // closed when nobody waits any more
}

func newScript(f Fault, output int, r *rand.Rand) *script {
	p := &script{fault: f, random: r, more: make(chan struct{}, 1), gone: make(chan struct{})}
	switch f.Kind {
	case Stall, Reset, Truncate, Garbage:
		p.strike = min(1+r.IntN(max(output-1, 1)), output-1)
	default:
		p.strike = -1
	}
	return p
}

// add says how many tokens there are. The loop calls it.
func (p *script) add(tokens int) {
	p.there.Store(int64(tokens))
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// play writes a flight's stream, as far as that goes.
func (p *script) play(s *Server, f *flight) {
	var b []byte
	for k := 0; k < f.Output; {
		together := max(p.fault.Count, 1)
		upTo := p.await(min(k+together, f.Output))
		switch {
		case upTo == 0:
			return
		case k == p.strike && !p.happen(f):
			return
		case k < p.strike:
			upTo = min(upTo, p.strike)
		case p.fault.Kind == Merge:
			upTo = min(upTo, k+together)
		}
		b = b[:0]
		for stamp := s.stampAt(s.clock()); k < upTo; k++ {
			b = f.appendToken(b, k, f.usage(), stamp)
		}
		if k == f.Output {
			b = f.appendEnd(b, f.usage(), s.stampAt(s.clock()))
		}
		if !p.write(f.conn, b) {
			return
		}
	}
	f.end()
}

// await returns how many tokens there are when there are as many as are
// wanted, and 0 when nobody waits for them any more.
func (p *script) await(wanted int) int {
	for {
		if there := int(p.there.Load()); there >= wanted {
			return there
		}
		select {
		case <-p.more:
		case <-p.gone:
			return 0
		}
	}
}

// pause returns false if nobody waits any more before d is over. A d of 0 never
// is.
func (p *script) pause(d time.Duration) bool {
	var over <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
		return true
	case <-p.gone:
		return false
	}
}

// happen has the fault happen, and returns whether the stream goes on.
func (p *script) happen(f *flight) bool {
	switch p.fault.Kind {
	case Reset:
		f.conn.reset()
		return false
	case Truncate:
		f.conn.Close()
		return false
	case Stall:
		return p.pause(p.fault.Time)
	case Garbage:
		_, err := f.conn.Write(chunkOf([]byte(garbage)))
		return err == nil
	}
	return true
}

// garbage is an event that is neither JSON nor text.
const garbage = "data: {\"choices\":[{\"index\":0,\"te\xff\xfe\x00]]\n\n"

// write writes events as the fault has them come.
func (p *script) write(w io.Writer, b []byte) bool {
	switch p.fault.Kind {
	case Drip:
		const piece = 16
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

// chunkOf is b as a chunk of a chunked body.
func chunkOf(b []byte) []byte {
	_, chunk := framed(append([]byte(chunkRoom), b...))
	return chunk
}
