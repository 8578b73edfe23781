package check

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"moontide/trace"
	"moontide/trace/spill"
)

// prompts compares all rows with block ids that end with the same id: equal rows are
// duplicates, and the last block of the prompts should have one length. Rows without
// block ids are ignored, because prompts of equal length may differ.
//
// Whether a last block is partial depends on the block size, which is known only at the
// end, and equal rows may be anywhere, so all rows are sorted by their last id on disk.
type prompts struct {
	found  *findings
	rows   spill.Sorter // by the number of the last id, then by the hash of the row
	row    []byte       // to be reused
	hashed []byte
	tail   tail
	equal  []prompt // rows of one key, each with another hash
	key    uint64

	duplicates, full, lengths places
}

// sortMemory is the memory for rows in bytes.
const sortMemory = 32 << 20

// prompt is a row with ids.
type prompt struct {
	line        int
	at          trace.Opt[float64]
	hash        uint64
	isl, osl    int32
	blocks      int32
	lastBlock   uint32 // number
	firstOfKind int    // line of the first equal row
}

func (c *prompts) add(line int, r *trace.Request, last uint32) error {
	hash := c.hash(r)
	b := binary.AppendUvarint(c.row[:0], uint64(line))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r.Timestamp.Value))
	b = binary.LittleEndian.AppendUint32(b, uint32(hash>>32))
	for _, n := range []int{r.InputLength, r.OutputLength, len(r.HashIDs)} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	if r.Timestamp.Set {
		b = append(b, 1)
	}
	c.row = b
	return sorting(c.rows.Add(uint64(last)<<32|hash&math.MaxUint32, b))
}

func parsePrompt(r spill.Record) (p prompt) {
	b := r.Data
	uvarint := func() int {
		x, n := binary.Uvarint(b)
		b = b[n:]
		return int(x)
	}
	p.line = uvarint()
	p.at.Value = math.Float64frombits(binary.LittleEndian.Uint64(b))
	p.hash = uint64(binary.LittleEndian.Uint32(b[8:]))<<32 | r.Key&math.MaxUint32
	b = b[12:]
	p.isl, p.osl, p.blocks = int32(uvarint()), int32(uvarint()), int32(uvarint())
	p.at.Set = len(b) > 0
	p.lastBlock = uint32(r.Key >> 32)
	return p
}

func (c *prompts) hash(r *trace.Request) uint64 {
	b := binary.LittleEndian.AppendUint64(c.hashed[:0], math.Float64bits(r.Timestamp.Value))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.InputLength))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.OutputLength))
	for _, id := range r.HashIDs {
		b = binary.LittleEndian.AppendUint64(b, id)
	}
	c.hashed = append(b, r.SessionID...)
	return xxhash.Sum64(c.hashed)
}

// finish compares the rows. tokens is the smallest size of a block, 0 if unknown.
func (c *prompts) finish(b *blocks, tokens int) error {
	c.duplicates.most, c.full.most, c.lengths.most = c.found.examples, c.found.examples, c.found.examples
	for r, err := range c.rows.All {
		if err != nil {
			return err
		}
		p := parsePrompt(r)
		if len(c.tail.lengths) > 0 && p.lastBlock != c.tail.last {
			c.endTail(b, tokens)
		}
		c.tail.add(p)
		if r.Key != c.key {
			c.equal = c.equal[:0]
		}
		c.key = r.Key
		c.compare(p)
	}
	if len(c.tail.lengths) > 0 {
		c.endTail(b, tokens)
	}
	c.duplicates.report(c.found, Duplicate, func(p prompt) string {
		return fmt.Sprintf("as line %d: timestamp %s, input_length %d, output_length %d, %d ids",
			p.firstOfKind, ms(p.at.Value), p.isl, p.osl, p.blocks)
	})
	id := func(p prompt) uint64 { return b.table.IDs([]uint32{p.lastBlock})[0] }
	c.full.report(c.found, TailIsFull, func(p prompt) string {
		return fmt.Sprintf("id %d ends %d tokens in %d blocks, but is full elsewhere", id(p), p.isl, p.blocks)
	})
	c.lengths.report(c.found, TailTwoLengths, func(p prompt) string {
		return fmt.Sprintf("id %d ends %d tokens in %d blocks, but %d elsewhere", id(p), p.isl, p.blocks, p.osl)
	})
	return nil
}

// compare counts a row that is equal to an earlier one. Rows of one key come in the order
// of their lines.
func (c *prompts) compare(p prompt) {
	if !p.at.Set {
		return
	}
	for _, first := range c.equal {
		if first.hash == p.hash {
			p.firstOfKind = first.line
			c.duplicates.add(p)
			return
		}
	}
	c.equal = append(c.equal, p)
}

// tail is the state of the prompts that end with one id.
type tail struct {
	last    uint32 // its number
	lengths []tailLengths
}

// tailLengths are the prompts of one number of blocks.
type tailLengths struct {
	first    int // line
	blocks   int32
	shortest prompt
	longest  int32 // ISL
}

func (t *tail) add(p prompt) {
	t.last = p.lastBlock
	for i := range t.lengths {
		if l := &t.lengths[i]; l.blocks == p.blocks {
			l.first = min(l.first, p.line)
			l.longest = max(l.longest, p.isl)
			if p.isl < l.shortest.isl || p.isl == l.shortest.isl && p.line < l.shortest.line {
				l.shortest = p
			}
			return
		}
	}
	t.lengths = append(t.lengths, tailLengths{p.line, p.blocks, p, p.isl})
}

// endTail checks the last blocks of the prompts with as many blocks as the first one.
func (c *prompts) endTail(b *blocks, tokens int) {
	t := slices.MinFunc(c.tail.lengths, func(a, b tailLengths) int { return cmp.Compare(a.first, b.first) })
	c.tail.lengths = c.tail.lengths[:0]
	if tokens == 0 {
		return
	}
	above := int64(t.blocks-1) * int64(tokens)
	short := int64(t.shortest.isl) - above
	long := min(int64(t.longest)-above, int64(tokens))
	flags := *b.flags.At(t.shortest.lastBlock)
	switch {
	case flags&(manyParents|inTwice) != 0: // not one prefix, so not one tail
	case short <= 0 || short >= int64(tokens): // more ids than blocks, or no partial block
	case long == int64(tokens) || flags&inner != 0:
		c.full.add(t.shortest)
	case short < long:
		t.shortest.osl = t.longest // for the message
		c.lengths.add(t.shortest)
	}
}

// places counts rows and keeps the first of them.
type places struct {
	most  int
	count int
	first []prompt
}

func (l *places) add(p prompt) {
	l.count++
	i, _ := slices.BinarySearchFunc(l.first, p.line, func(p prompt, line int) int { return cmp.Compare(p.line, line) })
	if i < l.most {
		l.first = slices.Insert(l.first[:min(len(l.first), l.most-1)], i, p)
	}
}

func (l *places) report(found *findings, kind Kind, text func(prompt) string) {
	if l.count == 0 {
		return
	}
	found.of(kind).Count += l.count
	for _, p := range l.first {
		found.keep(kind, p.line, "%s", text(p))
	}
}
