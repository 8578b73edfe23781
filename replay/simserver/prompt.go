package simserver

import (
	"encoding/binary"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Prompt is a prompt as the engine sees it: a number of tokens, and a hash for
// each full block that stands for the block and everything before it. The
// tokens themselves are not kept, so a prompt takes 8 bytes a block. Make one
// with [Engine.NewPrompt]. It is for one goroutine.
type Prompt struct {
	blockSize int
	tokens    int
	blocks    []uint64
	// open is the hash of the block before, 8 bytes, and then the tokens of
	// the block that is not full yet, 8 bytes each.
	open []byte
}

func newPrompt(blockSize int) *Prompt {
	return &Prompt{blockSize: blockSize, open: make([]byte, 8)}
}

// AddToken appends one token. Which numbers stand for tokens is up to the
// caller: equal numbers are equal tokens.
func (p *Prompt) AddToken(token uint64) {
	p.open = binary.LittleEndian.AppendUint64(p.open, token)
	p.tokens++
	if p.tokens%p.blockSize != 0 {
		return
	}
	// Chaining the hash makes equal blocks after different prefixes differ.
	hash := xxhash.Sum64(p.open)
	p.blocks = append(p.blocks, hash)
	p.open = binary.LittleEndian.AppendUint64(p.open[:0], hash)
}

// AddText appends the words of s, one token for each. White space only
// separates, so text that is added in two calls is never joined into one word.
func (p *Prompt) AddText(s string) {
	for word := range strings.FieldsSeq(s) {
		p.AddToken(xxhash.Sum64String(word))
	}
}

// Len is the number of tokens (ISL).
func (p *Prompt) Len() int { return p.tokens }

// hash stands for the whole prompt, the tokens of its last partial block
// included.
func (p *Prompt) hash() uint64 { return xxhash.Sum64(p.open) }
