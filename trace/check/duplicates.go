package check

import (
	"encoding/binary"
	"math"

	"github.com/cespare/xxhash/v2"

	"moontide/trace"
)

// duplicates finds equal rows anywhere in the trace. It ignores rows without block
// ids, because prompts of equal length may differ.
type duplicates struct {
	found *findings
	rows  map[uint64]int // first line by hash of the row
	bytes []byte
}

func (c *duplicates) add(line int, r *trace.Request) {
	if !r.Timestamp.Set || len(r.HashIDs) == 0 {
		return
	}
	if c.rows == nil {
		c.rows = map[uint64]int{}
	}
	h := c.hash(r)
	if first, ok := c.rows[h]; ok {
		c.found.add(Duplicate, line, "as line %d: timestamp %s, input_length %d, output_length %d, %d ids",
			first, ms(r.Timestamp.Value), r.InputLength, r.OutputLength, len(r.HashIDs))
		return
	}
	c.rows[h] = line
}

func (c *duplicates) hash(r *trace.Request) uint64 {
	b := binary.LittleEndian.AppendUint64(c.bytes[:0], math.Float64bits(r.Timestamp.Value))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.InputLength))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.OutputLength))
	for _, id := range r.HashIDs {
		b = binary.LittleEndian.AppendUint64(b, id)
	}
	c.bytes = append(b, r.SessionID...)
	return xxhash.Sum64(c.bytes)
}
