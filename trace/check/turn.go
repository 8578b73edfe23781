package check

import (
	"encoding/binary"
	"math"

	"moontide/trace"
)

// turn is a row of a session, or one that waits for others, or that others may wait for.
type turn struct {
	line      int
	session   uint64 // hash of its session_id, 0 for none
	at, delay trace.Opt[float64]
	isl, osl  int
	blocks    int
	last      uint32 // number of its last block, if it has any
	// before and beforeID are the number and the id of the block before the last. It is
	// full, while the last one may be partial and have another id in a longer prompt.
	before   uint32
	beforeID uint64
	waits    bool // it has after
	one      bool // which names one request
	// sessionID and request, one that it names or its own, are their first runes, for
	// messages, and valid until the next turn is parsed.
	sessionID, request []byte
}

const (
	hasTime = 1 << iota
	hasDelay
	hasAfter
	hasOneAfter
	hasSession
)

// append appends the turn in a form for disk.
func (t *turn) append(b []byte) []byte {
	flags := byte(0)
	for i, set := range []bool{t.at.Set, t.delay.Set, t.waits, t.one, t.session != 0} {
		if set {
			flags |= 1 << i
		}
	}
	b = append(b, flags)
	for _, n := range []int{t.line, t.isl, t.osl, t.blocks, len(t.sessionID), len(t.request)} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	if t.at.Set {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(t.at.Value))
	}
	if t.delay.Set {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(t.delay.Value))
	}
	if t.session != 0 {
		b = binary.LittleEndian.AppendUint64(b, t.session)
	}
	if t.blocks > 0 {
		b = binary.LittleEndian.AppendUint32(b, t.last)
		b = binary.LittleEndian.AppendUint32(b, t.before)
		b = binary.LittleEndian.AppendUint64(b, t.beforeID)
	}
	b = append(b, t.sessionID...)
	return append(b, t.request...)
}

// parseTurn parses what append appended, and returns the rest. The names point into b.
func parseTurn(b []byte) (t turn, rest []byte) {
	flags := b[0]
	b = b[1:]
	var numbers [6]int
	for i := range numbers {
		n, size := binary.Uvarint(b)
		numbers[i], b = int(n), b[size:]
	}
	t.line, t.isl, t.osl, t.blocks = numbers[0], numbers[1], numbers[2], numbers[3]
	number := func() uint64 {
		n := binary.LittleEndian.Uint64(b)
		b = b[8:]
		return n
	}
	if t.at.Set = flags&hasTime != 0; t.at.Set {
		t.at.Value = math.Float64frombits(number())
	}
	if t.delay.Set = flags&hasDelay != 0; t.delay.Set {
		t.delay.Value = math.Float64frombits(number())
	}
	t.waits, t.one = flags&hasAfter != 0, flags&hasOneAfter != 0
	if flags&hasSession != 0 {
		t.session = number()
	}
	if t.blocks > 0 {
		both := number()
		t.last, t.before, t.beforeID = uint32(both), uint32(both>>32), number()
	}
	t.sessionID, b = b[:numbers[4]], b[numbers[4]:]
	t.request, b = b[:numbers[5]], b[numbers[5]:]
	return t, b
}

// full returns the number of blocks that are known to be full.
func (t *turn) full() int { return max(t.blocks-1, 0) }

// inMessage returns as much of an id as messages show, so that long ids take no memory.
func inMessage(id string) []byte {
	const most = 40
	runes := 0
	for i := range id {
		if runes++; runes > most {
			return []byte(id[:i])
		}
	}
	return []byte(id)
}
