package cache

import (
	"encoding/binary"

	"moontide/trace/routing"
)

// Sequence is a trace in memory: what the simulations need, which go over it
// more than once. The zero Sequence is empty and ready. Adding is not safe for
// concurrent use, reading is.
//
// It takes 4 bytes for each reference to a block and 24 for each request.
type Sequence struct {
	numbers  []uint32
	requests []sequenced
	distinct int // 1 + the largest number
}

// sequenced is a request: its ISL in tokens, the end of its numbers in
// Sequence.numbers, and the hash of its session, 0 where it has none.
type sequenced struct {
	isl     int
	end     int
	session uint64
}

// Add appends the next request: its blocks as numbered by
// [moontide/trace/block.Table], its ISL in tokens and its session, "" if it has
// none. The numbers are copied.
func (s *Sequence) Add(numbers []uint32, isl int, session string) {
	for _, n := range numbers {
		s.distinct = max(s.distinct, int(n)+1)
	}
	s.numbers = append(s.numbers, numbers...)
	s.requests = append(s.requests, sequenced{isl: isl, end: len(s.numbers), session: routing.SessionHash(session)})
}

// Group says which requests belong together where they do not say so: requests
// with the same number are a session, and those below 0 have none. It stands in
// for the names that Add was given; sessions must be one for each request.
func (s *Sequence) Group(sessions []int32) {
	for i := range s.requests {
		s.requests[i].session = 0
		if n := sessions[i]; n >= 0 {
			var name [4]byte
			binary.LittleEndian.PutUint32(name[:], uint32(n))
			s.requests[i].session = routing.SessionHash(string(name[:]))
		}
	}
}

// Len is the number of requests.
func (s *Sequence) Len() int { return len(s.requests) }

// References is the number of references to blocks.
func (s *Sequence) References() int { return len(s.numbers) }

// Curve is the exact LRU curve of the sequence, see [CurveBuilder].
func (s *Sequence) Curve(blockSize int) *Curve {
	var b CurveBuilder
	for i, r := range s.requests {
		b.Add(s.blocks(i), r.isl)
	}
	return b.Curve(blockSize)
}

// blocks are the blocks of a request.
func (s *Sequence) blocks(request int) []uint32 {
	start := 0
	if request > 0 {
		start = s.requests[request-1].end
	}
	return s.numbers[start:s.requests[request].end]
}
