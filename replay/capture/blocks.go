package capture

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
)

// chain hashes prompts into block ids. The id of a block is the first 53 bits of
//
//	h(i) = HMAC-SHA256(key, h(i-1) || content of block i)
//
// so it identifies the whole prefix, and h(0) is that of the [scope] of the prompt.
// The probability that any two of n different prefixes get the same id is about
// n*n/2^54: 0.6 % for ten million blocks.
//
// A chain is not safe for concurrent use.
type chain struct {
	mac hash.Hash
	sum [sha256.Size]byte // of the blocks so far
}

func newChain(k Key) *chain { return &chain{mac: hmac.New(sha256.New, k[:])} }

// blocks are the ids of a prompt.
type blocks struct {
	scope uint64   // the id of the scope
	ids   []uint64 // of all blocks
	full  int      // the number of full ones
	sum   [sha256.Size]byte
}

// hash returns the ids of a prompt of which each block has a number of bytes, the last
// one perhaps fewer. Prompts of different scopes, such as models, share no ids.
func (c *chain) hash(scope string, prompt []byte, blockBytes int) (b blocks) {
	c.sum = [sha256.Size]byte{}
	b.scope = c.add([]byte(scope))
	b.full = len(prompt) / blockBytes
	b.ids = make([]uint64, 0, b.full+1)
	for range b.full {
		b.ids = append(b.ids, c.add(prompt[:blockBytes]))
		prompt = prompt[blockBytes:]
	}
	if len(prompt) > 0 {
		b.ids = append(b.ids, c.add(prompt))
	}
	b.sum = c.sum
	return b
}

// add adds a block and returns its id.
func (c *chain) add(block []byte) uint64 {
	c.mac.Reset()
	c.mac.Write(c.sum[:])
	c.mac.Write(block)
	c.mac.Sum(c.sum[:0])
	return id(c.sum[:])
}

// fit returns the ids of a prompt that has a number of blocks by the server's count. If
// the server counts more, because its chat template adds tokens, further ids follow from
// the last; if it counts fewer, the last ones are left out.
func (b blocks) fit(k Key, count int) []uint64 {
	if count <= len(b.ids) {
		return b.ids[:count]
	}
	c := newChain(k)
	c.sum = b.sum
	for len(b.ids) < count {
		b.ids = append(b.ids, c.add(nil))
	}
	return b.ids
}
