package check

import (
	"fmt"
	"math"

	"moontide/trace"
	"moontide/trace/block"
)

// blocks checks that each id identifies one prefix.
type blocks struct {
	found   *findings
	table   block.Table
	known   block.List[known] // by number in the table
	flags   block.List[uint8]
	numbers []uint32
}

// known is the state of one id. Lines are truncated to 32 bits, which is
// enough for 4 billion rows.
type known struct {
	parent uint32 // the number of the id before it, or root
	line   uint32 // of its last use
}

const root = math.MaxUint32 // the table gives no id this number

const (
	manyParents = 1 << iota // was reported
	inTwice                 // occurs twice in a row
)

// add numbers the blocks of the next row.
func (c *blocks) add(line int, r *trace.Request) {
	c.numbers = c.table.AppendNumbers(c.numbers[:0], r.HashIDs)
	parent, repeated := uint32(root), false
	for i, n := range c.numbers {
		if int(n) >= c.known.Len() {
			c.known.Add(known{parent: parent, line: uint32(line)})
			c.flags.Add(0)
			parent = n
			continue
		}
		k, flags := c.known.At(n), c.flags.At(n)
		switch {
		case k.line == uint32(line):
			if !repeated {
				c.found.add(RepeatedID, line, "id %d again as block %d of %d", r.HashIDs[i], i+1, len(r.HashIDs))
			}
			repeated = true
			*flags |= inTwice
		case k.parent != parent && *flags&manyParents == 0:
			*flags |= manyParents
			c.found.add(TwoParents, line, "id %d is %s, but not on line %d", r.HashIDs[i], position(r.HashIDs, i), k.line)
		}
		k.line = uint32(line)
		parent = n
	}
}

// mayHave reports whether the prompt that ends with block last has the block with the
// given number up blocks earlier. If ids are not chained to their prefixes, which is a
// finding of its own, the response is unknown and mayHave returns true.
func (c *blocks) mayHave(last uint32, up int, number uint32) bool {
	for range up {
		if *c.flags.At(last)&(manyParents|inTwice) != 0 {
			return true
		}
		last = c.known.At(last).parent
	}
	return last == number
}

func position(ids []uint64, i int) string {
	if i == 0 {
		return "the first block"
	}
	return fmt.Sprintf("block %d, after id %d", i+1, ids[i-1])
}

// err returns an error if there were too many distinct ids.
func (c *blocks) err() error { return c.table.Err() }
