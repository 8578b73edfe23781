package trace

import (
	"encoding/binary"
	"math"
)

// AppendStored appends a row in a form for temporary files: its values in order. The byte before an
// optional value or a slice is 1 if it is set.
func AppendStored(b []byte, r *Request) []byte {
	optional := func(set bool, bits uint64) {
		if b = append(b, 0); set {
			b[len(b)-1] = 1
			b = binary.LittleEndian.AppendUint64(b, bits)
		}
	}
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	optional(r.Timestamp.Set, math.Float64bits(r.Timestamp.Value))
	optional(r.Delay.Set, math.Float64bits(r.Delay.Value))
	optional(r.ContextLen.Set, uint64(r.ContextLen.Value))
	optional(r.UniquePromptLen.Set, uint64(r.UniquePromptLen.Value))
	optional(r.HashIDs != nil, uint64(len(r.HashIDs)))
	last := uint64(0)
	for _, id := range r.HashIDs {
		b = binary.AppendVarint(b, int64(id-last)) // usually 1
		last = id
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(r.InputLength)), uint64(r.OutputLength))
	optional(r.After != nil, uint64(len(r.After)))
	for _, id := range r.After {
		text(id)
	}
	for _, s := range []string{r.SessionID, r.ID, string(r.DelayKind)} {
		text(s)
	}
	return append(b, r.Extra...)
}

// ParseStored parses what AppendStored appended. The block ids are in the array of ids, if it
// is long enough.
func ParseStored(b []byte, ids []uint64) (r Request) {
	optional := func() (bits uint64, set bool) {
		if set = b[0] == 1; set {
			bits = binary.LittleEndian.Uint64(b[1:])
			b = b[8:]
		}
		b = b[1:]
		return bits, set
	}
	number := func() int {
		n, size := binary.Uvarint(b)
		b = b[size:]
		return int(n)
	}
	text := func() (s string) {
		n := number()
		s, b = string(b[:n]), b[n:]
		return s
	}
	ms := func() Opt[float64] {
		bits, set := optional()
		return Opt[float64]{math.Float64frombits(bits), set}
	}
	length := func() Opt[int] {
		n, set := optional()
		return Opt[int]{int(n), set}
	}
	r.Timestamp, r.Delay, r.ContextLen, r.UniquePromptLen = ms(), ms(), length(), length()
	if n, set := optional(); set {
		if ids == nil || uint64(cap(ids)) < n {
			ids = make([]uint64, n)
		}
		r.HashIDs = ids[:n]
		last := uint64(0)
		for i := range r.HashIDs {
			step, size := binary.Varint(b)
			b = b[size:]
			last += uint64(step)
			r.HashIDs[i] = last
		}
	}
	r.InputLength, r.OutputLength = number(), number()
	if n, set := optional(); set {
		r.After = make([]string, n)
		for i := range r.After {
			r.After[i] = text()
		}
	}
	r.SessionID, r.ID, r.DelayKind = text(), text(), DelayKind(text())
	if len(b) > 0 {
		r.Extra = append([]byte(nil), b...)
	}
	return r
}
