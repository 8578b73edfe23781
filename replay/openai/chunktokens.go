package openai

import (
	"bytes"
	"encoding/binary"
	"math"
)

// chunkTokens stores how many tokens each chunk has. It takes no memory while all
// chunks have one.
type chunkTokens struct {
	n       int
	unknown bool   // the server did not tell for some chunk
	bytes   []byte // varints; nil while all chunks have one token
}

// add adds a chunk of k tokens.
func (c *chunkTokens) add(k int) {
	k = min(max(k, 0), math.MaxInt32)
	if k != 1 && c.bytes == nil {
		c.bytes = append(make([]byte, 0, 2*c.n+16), bytes.Repeat([]byte{1}, c.n)...)
	}
	if c.bytes != nil {
		c.bytes = binary.AppendUvarint(c.bytes, uint64(k))
	}
	c.n++
}

// list returns the tokens of each chunk, nil if they are unknown or all 1.
func (c *chunkTokens) list() []int32 {
	if c.unknown || c.bytes == nil {
		return nil
	}
	all := make([]int32, 0, c.n)
	for rest := c.bytes; len(rest) > 0; {
		k, size := binary.Uvarint(rest)
		all = append(all, int32(k))
		rest = rest[size:]
	}
	return all
}

// sum returns the tokens of all chunks, if they are known.
func (c *chunkTokens) sum() (tokens int, ok bool) {
	if c.bytes == nil {
		return c.n, !c.unknown
	}
	for _, k := range c.list() {
		tokens += int(k)
	}
	return tokens, !c.unknown
}
