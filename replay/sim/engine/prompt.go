package engine

import (
	"encoding/binary"
	"math/bits"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Prompt is a prompt as an engine sees it: a number of tokens, and a hash for each full
// block and everything before it, so that prompts with a common prefix have the same
// first hashes. It takes 8 bytes per block. Make it with [NewPrompt] from tokens, or
// with [TracePrompt] from a row of a trace; the hashes of the two do not match, so use
// only one of them with an engine. It is not safe for concurrent use.
type Prompt struct {
	blockSize int
	tokens    int
	blocks    []uint64
	// open is the hash of the block before and the tokens of the block that is not
	// full yet, 8 bytes each.
	open []byte
}

// NewPrompt returns an empty prompt in blocks of an engine's size.
func NewPrompt(blockSize int) *Prompt {
	return &Prompt{blockSize: blockSize, open: make([]byte, 8)}
}

// AddToken appends one token. Equal numbers are equal tokens.
func (p *Prompt) AddToken(token uint64) {
	p.add(token)
	p.tokens++
}

// AddText appends one token for each word of s, separated by white space. Words are
// never joined across calls.
func (p *Prompt) AddText(s string) {
	for word := range strings.FieldsSeq(s) {
		p.AddToken(WordToken(word))
	}
}

// WordToken returns the token of a word: a number of 31 bits, like token ids.
func WordToken(word string) uint64 { return xxhash.Sum64String(word) >> 33 }

// AddAnswer appends a token of the answer. It does not count as part of the prompt, but
// makes the blocks of the answer known, so that later prompts can hit them. All tokens
// of an answer but the last go into the KV cache.
func (p *Prompt) AddAnswer(token uint64) { p.add(token) }

func (p *Prompt) add(token uint64) {
	p.open = binary.LittleEndian.AppendUint64(p.open, token)
	if len(p.open) <= 8*p.blockSize {
		return
	}
	// The chained hash makes equal blocks after different prefixes differ.
	hash := xxhash.Sum64(p.open)
	p.blocks = append(p.blocks, hash)
	p.open = binary.LittleEndian.AppendUint64(p.open[:0], hash)
}

// Len returns the number of tokens (ISL).
func (p *Prompt) Len() int { return p.tokens }

// Hash returns a hash of all tokens so far, for prompts of [NewPrompt].
func (p *Prompt) Hash() uint64 { return xxhash.Sum64(p.open) }

// Blocks returns the number of full blocks, those of known answers included.
func (p *Prompt) Blocks() int { return len(p.blocks) }

// Row describes the prompt of a row of a trace.
type Row struct {
	ISL, OSL  int      // tokens
	HashIDs   []uint64 // each for a block and all before it
	BlockSize int      // tokens of a block of the trace
	// Number is unique to the row: tokens that no id covers are shared with no other
	// row.
	Number int
	// CacheAnswer caches the generated tokens too. No other row shares them, because a
	// trace does not say which later prompt contains them.
	CacheAnswer bool
}

// TracePrompt returns the prompt of a row in blocks of an engine's size. The two block
// sizes need not fit: a block's hash is made of the ids up to its end and the offset in
// the last of them. So a partial last block of one row shares its first tokens with a
// row in which the same id is longer, as the prompts' texts do.
func TracePrompt(r Row, blockSize int) *Prompt {
	r.BlockSize = max(r.BlockSize, 1)
	p := &Prompt{blockSize: blockSize, tokens: r.ISL}
	known := r.ISL
	if r.CacheAnswer {
		known += max(r.OSL-1, 0) // the last token is never cached
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

const rowDomain = 0x6d6f6f6e74696465 // keeps tokens without an id apart from ids

// mix returns a hash of a and b, the finalizer of SplitMix64 (Steele, Lea and Flood,
// 2014).
func mix(a, b uint64) uint64 {
	x := bits.RotateLeft64(a, 25) + 0x9e3779b97f4a7c15*(b+1)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
