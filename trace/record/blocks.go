package record

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"hash"
	"math"
)

// Blocks are the block ids of a prompt, and what is needed to find its session.
type Blocks struct {
	ids []uint64          // of all blocks
	sum [sha256.Size]byte // of the last
	of  hashed            // the prompt, until Sessions.Join has seen it
}

// Hasher hashes prompts. It is not safe for concurrent use.
type Hasher struct {
	cfg Config
	ids *chain
}

// NewHasher returns a hasher. The configuration must be valid.
func NewHasher(cfg Config) *Hasher {
	cfg = cfg.WithDefaults()
	return &Hasher{cfg, newChain(cfg.Key.Keys().Blocks)}
}

// Hash returns the block ids of the prompt of a call. Calls of different models, and
// texts that are cut in different ways, share no ids. It releases the prompt from the
// call; the result holds it until its session is found.
func (h *Hasher) Hash(c *Call) *Blocks {
	p := &c.prompt
	size := p.unit() * h.cfg.BlockSize
	if !p.tokens {
		size = max(1, int(math.Round(h.cfg.BytesPerToken*float64(h.cfg.BlockSize))))
	}
	scope := fmt.Sprintf("%s %d %q %q", p.kind(), size, h.cfg.EncoderID, c.Model)
	b := h.ids.hash(scope, p.content, size)
	p.content = nil
	return b
}

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

// hash returns the ids of a prompt of which each block has a number of bytes, the last
// one perhaps fewer. Prompts of different scopes, such as models, share no ids.
func (c *chain) hash(scope string, prompt []byte, blockBytes int) *Blocks {
	c.sum = [sha256.Size]byte{}
	full := len(prompt) / blockBytes
	all := append(make([]uint64, 0, full+2), c.add([]byte(scope)))
	for rest := prompt; len(rest) > 0; rest = rest[min(blockBytes, len(rest)):] {
		all = append(all, c.add(rest[:min(blockBytes, len(rest))]))
	}
	return &Blocks{ids: all[1:], sum: c.sum, of: hashed{prompt, blockBytes, all[:1+full]}}
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
func (b *Blocks) fit(k Key, count int) []uint64 {
	if count <= len(b.ids) {
		return b.ids[:count]
	}
	c := newChain(k)
	c.sum = b.sum
	ids := b.ids
	for len(ids) < count {
		ids = append(ids, c.add(nil))
	}
	return ids
}
