package check

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
	"moontide/trace"
)

// mostAtOnce bounds how many rows of one instant are compared.
const mostAtOnce = 1 << 16

// duplicates looks for equal rows among those of one instant. Rows without ids
// are left alone: equal lengths do not make equal prompts.
type duplicates struct {
	found *ledger
	at    float64
	rows  map[uint64]int // from a hash of the row to its line
	bytes []byte
}

func (c *duplicates) add(line int, r *trace.Request) {
	if !r.Timestamp.Set || len(r.HashIDs) == 0 {
		return
	}
	if c.rows == nil || r.Timestamp.Value != c.at {
		c.at = r.Timestamp.Value
		c.forget()
	}
	h := c.hash(r)
	if first, ok := c.rows[h]; ok {
		c.found.add(Duplicate, line, "as line %d: timestamp %s, input_length %d, output_length %d, %d ids",
			first, ms(c.at), r.InputLength, r.OutputLength, len(r.HashIDs))
	} else if len(c.rows) < mostAtOnce {
		c.rows[h] = line
	}
}

// forget empties the map. To clear one costs what its largest burst took, so
// that after a large one a new map is cheaper.
func (c *duplicates) forget() {
	if c.rows == nil || len(c.rows) > 64 {
		c.rows = map[uint64]int{}
		return
	}
	clear(c.rows)
}

func (c *duplicates) hash(r *trace.Request) uint64 {
	b := binary.LittleEndian.AppendUint64(c.bytes[:0], uint64(r.InputLength))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.OutputLength))
	for _, id := range r.HashIDs {
		b = binary.LittleEndian.AppendUint64(b, id)
	}
	c.bytes = append(b, r.SessionID...)
	return xxhash.Sum64(c.bytes)
}
