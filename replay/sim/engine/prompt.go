package engine

import (
	"encoding/binary"
	"strings"

	"github.com/cespare/xxhash/v2"

	"moontide/replay/transcript"
)

// Prompt is a prompt as seen by an engine: a number of tokens, and one hash per
// full block that covers the block and everything before it, so prompts with a
// common prefix begin with the same hashes. It takes 8 bytes per block. Make it
// with [NewPrompt] from tokens, with [TracePrompt] from a trace row, or with
// [UniquePrompt]; the hashes of the first two do not match, so use only one of them
// with an engine. It is not safe for concurrent use.
type Prompt struct {
	blockSize int
	tokens    int
	blocks    []uint64
	cached    int // see UniquePrompt
	// open holds the hash of the previous block and the tokens of the
	// incomplete block, 8 bytes each.
	open []byte
}

// NewPrompt returns an empty prompt with an engine's block size.
func NewPrompt(blockSize int) *Prompt {
	return &Prompt{blockSize: blockSize, open: make([]byte, 8)}
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

// Blocks returns the number of full blocks, with those of known answers.
func (p *Prompt) Blocks() int { return len(p.blocks) }

// Hash returns a hash of all tokens so far. It requires a prompt made by
// [NewPrompt].
func (p *Prompt) Hash() uint64 { return xxhash.Sum64(p.open) }

// TracePrompt returns the prompt of a trace row with an engine's block size. The
// blocks of the first generated tokens of the answer are known too.
func TracePrompt(p *transcript.Prompt, generated, blockSize int) *Prompt {
	return &Prompt{blockSize: blockSize, tokens: p.Len, blocks: p.Blocks(blockSize, generated)}
}

// UniquePrompt returns a prompt that shares nothing with others. Engines take its
// first cached tokens as cached, at most all but the last, instead of looking up
// blocks: for repeating what another cache did.
func UniquePrompt(tokens, cached, blockSize int) *Prompt {
	return &Prompt{blockSize: blockSize, tokens: tokens, cached: max(0, min(cached, tokens-1))}
}
