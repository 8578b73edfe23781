package log

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"hash"
	"math"
	"slices"
)

// Blocks are the block ids of a prompt, and what is needed to find its session.
type Blocks struct {
	ids []uint64          // of all blocks
	sum [sha256.Size]byte // of the last
	of  hashed            // the prompt, until Sessions.Join has seen it
}

// Hash returns the block ids of the prompt of a call. It releases the prompt from the
// call; the result holds it until its session is found. The id of block i is that of
//
//	h(i) = HMAC-SHA256(key, h(i-1) || content of block i)
//
// so it identifies the whole prefix. h(0) is that of the model and of how the text is cut:
// calls that differ in these share no ids. The probability that any two of n different
// prefixes get the same id is about n*n/2^54: 0.6 % for ten million blocks.
func (r *Reader) Hash(c *Call) *Blocks {
	kind, size := "tokens", 4*r.cfg.BlockSize
	if !c.tokens {
		kind, size = "text", max(1, int(math.Round(r.cfg.BytesPerToken*float64(r.cfg.BlockSize))))
	}
	x := r.ids
	x.sum = [sha256.Size]byte{}
	all := []uint64{x.next(fmt.Appendf(nil, "%s %d %q %q", kind, size, r.cfg.EncoderID, c.Model))}
	for block := range slices.Chunk(c.content, size) {
		all = append(all, x.next(block))
	}
	b := &Blocks{all[1:], x.sum, hashed{c.content, size, all[:1+len(c.content)/size]}}
	c.content = nil
	return b
}

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

// ids makes ids under a key. It is not safe for concurrent use.
type ids struct {
	mac hash.Hash
	sum [sha256.Size]byte // of the last
}

func newIDs(k Key) *ids { return &ids{mac: hmac.New(sha256.New, k[:])} }

// of returns the id of a content that has some parts.
func (x *ids) of(parts ...[]byte) uint64 {
	x.mac.Reset()
	for _, part := range parts {
		x.mac.Write(part)
	}
	x.mac.Sum(x.sum[:0])
	return id(x.sum)
}

// next returns the id of a block after those before it.
func (x *ids) next(block []byte) uint64 { return x.of(x.sum[:], block) }
