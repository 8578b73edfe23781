package cache

import (
	"encoding/binary"

	"moontide/trace/routing"
)

// Sequence is a trace in memory, for simulations that read it more than once: 4
// bytes per use of a block and 24 per request. The zero Sequence is empty. Adding
// is not safe for concurrent use, reading is.
type Sequence struct {
	numbers  []uint32 // of all blocks in order
	requests []request
	distinct int // 1 + the largest number
}

type request struct {
	isl     int
	end     int    // of its blocks in Sequence.numbers
	session uint64 // see routing.SessionHash
}

// Add appends a request: its blocks as numbered by
// [moontide/trace/block.Table], its ISL in tokens and its session, "" for none.
// The numbers are copied.
func (s *Sequence) Add(numbers []uint32, isl int, session string) {
	for _, n := range numbers {
		s.distinct = max(s.distinct, int(n)+1)
	}
	s.numbers = append(s.numbers, numbers...)
	s.requests = append(s.requests, request{isl: isl, end: len(s.numbers), session: routing.SessionHash(session)})
}

// Group replaces the sessions given to Add: requests with the same non-negative
// number are one session; those with a negative number have none. It takes one
// number per request.
func (s *Sequence) Group(sessions []int32) {
	for i, n := range sessions {
		s.requests[i].session = 0
		if n >= 0 {
			var name [4]byte
			binary.LittleEndian.PutUint32(name[:], uint32(n))
			s.requests[i].session = routing.SessionHash(string(name[:]))
		}
	}
}

// Curve returns the exact LRU curve of the sequence, see [CurveBuilder].
func (s *Sequence) Curve(blockSize int) *Curve {
	var b CurveBuilder
	for i, r := range s.requests {
		b.Add(s.blocks(i), r.isl)
	}
	return b.Curve(blockSize)
}

// blocks returns the blocks of a request.
func (s *Sequence) blocks(request int) []uint32 {
	start := 0
	if request > 0 {
		start = s.requests[request-1].end
	}
	return s.numbers[start:s.requests[request].end]
}
