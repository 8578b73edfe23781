package engine

import (
	"encoding/binary"
	"math/bits"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Prompt is a prompt as an engine sees it: a number of tokens, and a hash for
// each full block that stands for the block and everything before it. The
// tokens themselves are not kept, so a prompt takes 8 bytes a block. Make one
// with [NewPrompt], from the tokens that were received, or with [TracePrompt],
// from a row of a trace. It is for one goroutine.
//
// Prompts that begin alike have the same first blocks. Hashes of the two kinds
// do not match: an engine is fed from one of them.
type Prompt struct {
	blockSize int
	tokens    int
	blocks    []uint64
	// open is the hash of the block before, 8 bytes, and then the tokens of
	// the block that is not full yet, 8 bytes each.
	open []byte
}

// NewPrompt returns an empty prompt in blocks of an engine's size.
func NewPrompt(blockSize int) *Prompt {
	return &Prompt{blockSize: blockSize, open: make([]byte, 8)}
}

// AddToken appends one token. Which numbers stand for tokens is up to the
// caller: equal numbers are equal tokens.
func (p *Prompt) AddToken(token uint64) {
	p.add(token)
	p.tokens++
}

// AddText appends the words of s, one token for each. White space only
// separates, so text that is added in two calls is never joined into one word.
func (p *Prompt) AddText(s string) {
	for word := range strings.FieldsSeq(s) {
		p.AddToken(WordToken(word))
	}
}

// WordToken is the token that a word is: a number of 31 bits, as token ids are.
func WordToken(word string) uint64 { return xxhash.Sum64String(word) >> 33 }

// AddAnswer appends a token of the answer: it is none of the prompt, but the
// block that it fills can be found in the KV cache by a later prompt. An
// engine caches the tokens that it generates as far as they are known to it
// in this way; all but the last of an answer go into the KV cache.
func (p *Prompt) AddAnswer(token uint64) { p.add(token) }

func (p *Prompt) add(token uint64) {
	p.open = binary.LittleEndian.AppendUint64(p.open, token)
	if len(p.open) <= 8*p.blockSize {
		return
	}
	// Chaining the hash makes equal blocks after different prefixes differ.
	hash := xxhash.Sum64(p.open)
	p.blocks = append(p.blocks, hash)
	p.open = binary.LittleEndian.AppendUint64(p.open[:0], hash)
}

// Len is the number of tokens (ISL).
func (p *Prompt) Len() int { return p.tokens }

// Hash stands for all tokens so far, those of a last partial block included.
// It is for prompts of [NewPrompt].
func (p *Prompt) Hash() uint64 { return xxhash.Sum64(p.open) }

// Blocks is the number of full blocks, those of known answers included.
func (p *Prompt) Blocks() int { return len(p.blocks) }

// Row is what a row of a trace tells of its prompt.
type Row struct {
	ISL, OSL  int      // tokens
	HashIDs   []uint64 // as in the trace, each for a block and all before it
	BlockSize int      // tokens of a block of the trace
	// Number tells the row from all others: tokens that no id covers belong to
	// it alone.
	Number int
	// CacheAnswer makes the generated tokens known to the engine, which then
	// caches them. They belong to the row alone, for a trace does not say
	// which later prompt holds them.
	CacheAnswer bool
}

// TracePrompt is the prompt of a row in blocks of an engine's size, whatever
// the two sizes are. A block that ends within a block of the trace is known by
// its end: by the ids up to there and the offset in the last of them. So the
// partial tail of one row has the first blocks of another in which the same id
// is longer, as the text of one is then a prefix of the other's.
func TracePrompt(r Row, blockSize int) *Prompt {
	r.BlockSize = max(r.BlockSize, 1)
	p := &Prompt{blockSize: blockSize, tokens: r.ISL}
	known := r.ISL
	if r.CacheAnswer {
		known += max(r.OSL-1, 0) // the last token is never put into the cache
	}
	p.blocks = make([]uint64, known/blockSize)
	own := mix(rowDomain, uint64(r.Number))
	chain, block := uint64(0), -1
	start, end := 0, 0 // tokens of the trace's block
	for k := range p.blocks {
		last := (k+1)*blockSize - 1
		for last >= end {
			block++
			start, end = end, min(end+r.BlockSize, r.ISL)
			id := mix(own, uint64(block))
			if start == r.ISL { // the answer
				end = known
			} else if block < len(r.HashIDs) {
				id = r.HashIDs[block]
			}
			chain = mix(chain, id)
		}
		p.blocks[k] = mix(chain, uint64(last-start))
	}
	return p
}

const rowDomain = 0x6d6f6f6e74696465 // a number that nobody uses for ids

// mix is a hash of a and b: the finalizer of SplitMix64 (Steele, Lea and Flood,
// 2014) over both.
func mix(a, b uint64) uint64 {
	x := bits.RotateLeft64(a, 25) + 0x9e3779b97f4a7c15*(b+1)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
