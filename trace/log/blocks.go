package log

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
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
	ids *ids
}

// NewHasher returns a hasher. The configuration must be valid.
func NewHasher(cfg Config) *Hasher {
	cfg = cfg.WithDefaults()
	return &Hasher{cfg, newIDs(cfg.Key.Keys().Blocks)}
}

// Hash returns the block ids of the prompt of a call. Calls of different models, and
// texts that are cut in different ways, share no ids. It releases the prompt from the
// call; the result holds it until its session is found.
func (h *Hasher) Hash(c *Call) *Blocks {
	kind, size := "tokens", 4*h.cfg.BlockSize
	if !c.tokens {
		kind, size = "text", max(1, int(math.Round(h.cfg.BytesPerToken*float64(h.cfg.BlockSize))))
	}
	scope := fmt.Sprintf("%s %d %q %q", kind, size, h.cfg.EncoderID, c.Model)
	b := h.ids.prefixes(scope, c.content, size)
	c.content = nil
	return b
}

// prefixes returns the ids of a prompt of which each block has a number of bytes, the
// last one perhaps fewer. Prompts of different scopes, such as models, share no ids. The
// id of block i is that of
//
//	h(i) = HMAC-SHA256(key, h(i-1) || content of block i)
//
// so it identifies the whole prefix, and h(0) is that of the scope. The probability that
// any two of n different prefixes get the same id is about n*n/2^54: 0.6 % for ten million
// blocks.
func (x *ids) prefixes(scope string, prompt []byte, blockBytes int) *Blocks {
	x.sum = [sha256.Size]byte{}
	full := len(prompt) / blockBytes
	all := append(make([]uint64, 0, full+2), x.next([]byte(scope)))
	for rest := prompt; len(rest) > 0; rest = rest[min(blockBytes, len(rest)):] {
		all = append(all, x.next(rest[:min(blockBytes, len(rest))]))
	}
	return &Blocks{ids: all[1:], sum: x.sum, of: hashed{prompt, blockBytes, all[:1+full]}}
}

// next returns the id of a block after those before it.
func (x *ids) next(block []byte) uint64 { return x.of(x.sum[:], block) }

// fit returns the ids of a prompt that has a number of blocks by the server's count. If
// the server counts more, because its chat template adds tokens, further ids follow from
// the last. If it counts fewer, the last one stands for the rest of the prompt: left out,
// prompts that differ in their ends would seem equal.
func (b *Blocks) fit(k Key, count int) []uint64 {
	if count == len(b.ids) || count == 0 {
		return b.ids[:count]
	}
	x := newIDs(k)
	x.sum = b.sum
	all := slices.Clone(b.ids[:min(count-1, len(b.ids))])
	for len(all) < count {
		all = append(all, x.next(nil))
	}
	return all
}
