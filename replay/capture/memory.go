package capture

import (
	"sync/atomic"
)

// memory limits the bytes in use. It is safe for concurrent use.
type memory struct {
	most int64
	held atomic.Int64
}

// take reserves n bytes and reports whether they are available.
func (m *memory) take(n int) bool {
	if m.held.Add(int64(n)) > m.most {
		m.held.Add(-int64(n))
		return false
	}
	return true
}

// crowded reports whether little memory is available.
func (m *memory) crowded() bool { return m.held.Load() > m.most/4 }

func (m *memory) give(n int) { m.held.Add(-int64(n)) }

// buffer holds bytes up to its own limit and that of all buffers. Beyond them it drops
// everything and stays empty.
type buffer struct {
	memory  *memory
	most    int64
	expect  int64 // its length, 0 if that is not known
	bytes   []byte
	dropped gap
}

func (b *buffer) write(p []byte) {
	switch {
	case b.dropped != "":
	case int64(len(b.bytes)+len(p)) > b.most:
		b.drop(tooLarge)
	case cap(b.bytes)-len(b.bytes) >= len(p):
		b.bytes = append(b.bytes, p...)
	default:
		size := max(2*cap(b.bytes), len(b.bytes)+len(p), 4<<10)
		if n := int(min(b.expect, b.most)); n >= len(b.bytes)+len(p) {
			size = min(size, n)
		}
		if !b.memory.take(size) {
			b.drop(noMemory)
			return
		}
		old := cap(b.bytes)
		b.bytes = append(append(make([]byte, 0, size), b.bytes...), p...)
		b.memory.give(old + size - max(size, cap(b.bytes)))
	}
}

// drop releases the bytes; why is "" if they were used.
func (b *buffer) drop(why gap) {
	b.memory.give(cap(b.bytes))
	b.bytes, b.dropped = nil, why
}
