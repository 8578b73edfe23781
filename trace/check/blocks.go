package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"moontide/trace"
	"moontide/trace/block"
)

// blocks checks that each id identifies one prefix.
type blocks struct {
	found   *findings
	table   block.Table
	known   []known         // by number in the table
	tails   map[uint32]tail // by the number of a last id
	numbers []uint32
}

// known is the state of one id. Lines are truncated to 32 bits, which is
// enough for 4 billion rows.
type known struct {
	parent uint32 // the number of the id before it, or root
	line   uint32 // of its last use
	flags  uint8
}

const root = math.MaxUint32 // the table gives no id this number

const (
	inner       = 1 << iota // other blocks follow it somewhere, so it is full
	manyParents             // was reported
	inTwice                 // occurs twice in a row
)

// tail is the state of the prompts that end with one id.
type tail struct {
	id                uint64
	blocks            int32  // of the first such prompt
	shortest, longest int32  // ISL, of those with as many blocks
	line              uint32 // of the shortest
}

func (c *blocks) add(line int, r *trace.Request) {
	if len(r.HashIDs) == 0 {
		return
	}
	c.numbers = c.table.AppendNumbers(c.numbers[:0], r.HashIDs)
	parent, repeated := uint32(root), false
	for i, n := range c.numbers {
		if int(n) >= len(c.known) {
			c.known = append(c.known, known{parent: parent, line: uint32(line)})
			parent = n
			continue
		}
		k := &c.known[n]
		switch {
		case k.line == uint32(line):
			if !repeated {
				c.found.add(RepeatedID, line, "id %d again as block %d of %d", r.HashIDs[i], i+1, len(r.HashIDs))
			}
			repeated = true
			k.flags |= inTwice
		case k.parent != parent && k.flags&manyParents == 0:
			k.flags |= manyParents
			c.found.add(TwoParents, line, "id %d is %s, but not on line %d", r.HashIDs[i], position(r.HashIDs, i), k.line)
		}
		k.line = uint32(line)
		parent = n
	}
	last := len(c.numbers) - 1
	for _, n := range c.numbers[:last] {
		c.known[n].flags |= inner
	}
	c.addTail(line, r, c.numbers[last])
}

func position(ids []uint64, i int) string {
	if i == 0 {
		return "the first block"
	}
	return fmt.Sprintf("block %d, after id %d", i+1, ids[i-1])
}

// addTail records the prompt's last block. Whether that block is partial depends
// on the block size, which is known only at the end.
func (c *blocks) addTail(line int, r *trace.Request, n uint32) {
	blocks, isl := int32(len(r.HashIDs)), int32(r.InputLength)
	t, ok := c.tails[n]
	switch {
	case !ok:
		if c.tails == nil {
			c.tails = map[uint32]tail{}
		}
		t = tail{id: r.HashIDs[blocks-1], blocks: blocks, shortest: isl, longest: isl, line: uint32(line)}
	case t.blocks != blocks:
		return
	case isl < t.shortest:
		t.shortest, t.line = isl, uint32(line)
	case isl > t.longest:
		t.longest = isl
	default:
		return
	}
	c.tails[n] = t
}

// err returns an error if there were too many distinct ids.
func (c *blocks) err() error { return c.table.Err() }

// finish checks the last blocks of prompts, given the least tokens of a block; 0
// if unknown.
func (c *blocks) finish(tokens int) {
	if tokens == 0 {
		return
	}
	type place struct {
		kind Kind
		Example
	}
	var places []place
	for n, t := range c.tails {
		above := int64(t.blocks-1) * int64(tokens)
		short := int64(t.shortest) - above
		long := min(int64(t.longest)-above, int64(tokens))
		flags := c.known[n].flags
		switch {
		case flags&(manyParents|inTwice) != 0: // not one prefix, so not one tail
		case short <= 0 || short >= int64(tokens): // more ids than blocks, or no partial block
		case long == int64(tokens) || flags&inner != 0:
			places = append(places, place{TailIsFull, Example{int(t.line), fmt.Sprintf("id %d ends %d tokens in %d blocks, but is full elsewhere", t.id, t.shortest, t.blocks)}})
		case short < long:
			places = append(places, place{TailTwoLengths, Example{int(t.line), fmt.Sprintf("id %d ends %d tokens in %d blocks, but %d elsewhere", t.id, t.shortest, t.blocks, t.longest)}})
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.Line, b.Line) })
	for _, p := range places {
		c.found.add(p.kind, p.Line, "%s", p.Value)
	}
}
