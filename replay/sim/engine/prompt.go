package engine

import (
	"encoding/binary"
	"math/bits"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Prompt is a prompt as seen by an engine: a number of tokens, and one hash per
// full block that covers the block and everything before it, so prompts with a
// common prefix begin with the same hashes. It takes 8 bytes per block. Make it
// with [NewPrompt] from tokens, or with [TracePrompt] from a trace row; the
// hashes of the two do not match, so use only one of them with an engine. It is
// not safe for concurrent use.
type Prompt struct {
	blockSize int
	tokens    int
	blocks    []uint64
	// open holds the hash of the previous block and the tokens of the
	// incomplete block, 8 bytes each.
	open []byte
}

// NewPrompt returns an empty prompt with an engine's block size.
func NewPrompt(blockSize int) *Prompt {
	return &Prompt{blockSize: blockSize, open: make([]byte, 8)}
}

// SetAdapter makes the blocks of an empty prompt those of an adapter of the model,
// which share nothing with those of the model and of other adapters.
func (p *Prompt) SetAdapter(name string) {
	binary.LittleEndian.PutUint64(p.open, xxhash.Sum64String(name))
}

// AddToken appends a token. Equal numbers are equal tokens.
func (p *Prompt) AddToken(token uint64) {
	p.add(token)
	p.tokens++
}

// AddText appends one token per word of s, separated by white space. Words are
// never joined across calls.
func (p *Prompt) AddText(s string) {
	for word := range strings.FieldsSeq(s) {
		p.AddToken(WordToken(word))
	}
}

// WordToken returns the token of a word, a number of 31 bits like a token id.
func WordToken(word string) uint64 { return xxhash.Sum64String(word) >> 33 }

// AddAnswer appends a token of the answer. It is not part of the prompt, but
// makes the blocks of the answer known, so that later prompts can hit them. All
// tokens of an answer except the last enter the KV cache.
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

// Hash returns a hash of all tokens so far. It requires a prompt made by
// [NewPrompt].
func (p *Prompt) Hash() uint64 { return xxhash.Sum64(p.open) }

// Row describes the prompt of a trace row.
type Row struct {
	ISL, OSL  int      // tokens
	HashIDs   []uint64 // each covers a block and all blocks before it
	BlockSize int      // block size of the trace in tokens
	// Number is unique to the row. Tokens not covered by an id are not shared
	// with other rows.
	Number int
	// CacheAnswer caches the generated tokens too. No other row shares them,
	// because a trace does not record which later prompt contains them.
	CacheAnswer bool
}

// TracePrompt returns the prompt of a trace row with an engine's block size.
// The two block sizes need not be multiples: a block's hash is made of the ids
// up to its end and the offset in the last of them. A partial last block of one
// row therefore shares its first tokens with a row in which the same id is
// longer, as the prompts' texts do.
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
	start, end := 0, 0 // token range of the trace block
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

const rowDomain = 0x6d6f6f6e74696465 // separates tokens without an id from ids

// mix returns a hash of a and b, using the finalizer of SplitMix64 (Steele, Lea
// and Flood, 2014).
func mix(a, b uint64) uint64 {
	x := bits.RotateLeft64(a, 25) + 0x9e3779b97f4a7c15*(b+1)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
