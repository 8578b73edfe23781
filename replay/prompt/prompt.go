package prompt

import (
	"fmt"
	"iter"

	"moontide/trace"
)

// The defaults of a Source.
const (
	DefaultBlockSize = 512    // tokens a block
	DefaultLow       = 1_000  // above the control tokens of the usual vocabularies
	DefaultHigh      = 30_000 // within all of them
)

// minSpan is the least number of token ids to draw from. Servers share
// prefixes in units of 16 tokens or more; 256 ids make that 128 random bits,
// so that different blocks do not start alike.
const minSpan = 256

// A Source makes prompts. It holds no state: the same fields make the same
// prompts on every machine, and any number of goroutines may use it at once.
// The zero Source works.
type Source struct {
	// Seed and Salt choose the content. By custom the seed belongs to the
	// experiment and the salt to the run: a new salt makes the same trace
	// miss whatever an earlier run left in the server's cache.
	Seed uint64
	Salt string
	// BlockSize is the number of tokens that an id of the trace stands for;
	// 0 is DefaultBlockSize.
	BlockSize int
	// Token ids are drawn from [Low, High); 0 is DefaultLow and DefaultHigh.
	// Words do not depend on them.
	Low, High uint32
	// Words are those to draw from; nil is the list of this package.
	Words *Words
	// Text, unless it is nil, is what the text of prompts is taken from, in
	// place of words.
	Text *Corpus
}

// Validate says what is wrong with s, if anything: a negative block size, or
// fewer than 256 token ids to draw from. Prompts of a Source that it refuses
// have the right length and unspecified content.
func (s Source) Validate() error {
	if s.BlockSize < 0 {
		return fmt.Errorf("block size %d is negative", s.BlockSize)
	}
	s = s.withDefaults()
	if s.High < s.Low || s.High-s.Low < minSpan {
		return fmt.Errorf("token ids [%d, %d) are fewer than %d", s.Low, s.High, minSpan)
	}
	return nil
}

// TokenRange is what token ids are drawn from: low on, and below high.
func (s Source) TokenRange() (low, high uint32) {
	s = s.withDefaults()
	return s.Low, s.High
}

func (s Source) withDefaults() Source {
	if s.BlockSize <= 0 {
		s.BlockSize = DefaultBlockSize
	}
	if s.Low == 0 {
		s.Low = DefaultLow
	}
	if s.High == 0 {
		s.High = DefaultHigh
	}
	return s
}

// Prompt is the prompt of r, the request at index row of its trace: exactly
// r.InputLength tokens. The row matters only where the ids do not cover the
// prompt, and must then be unique among the rows that are replayed together,
// also across the shards of a run. Prompt reads r.HashIDs in place.
func (s Source) Prompt(r trace.Request, row int) Prompt {
	s = s.withDefaults()
	return Prompt{
		length:    max(r.InputLength, 0),
		blockSize: s.BlockSize,
		ids:       r.HashIDs,
		blocks:    s.base(blockDomain, ""),
		own:       key(s.base(rowDomain, ""), uint64(row)),
		alphabet:  newAlphabet(s.Low, s.High),
		words:     s.Words.table(),
		text:      s.Text,
	}
}

// Filler is a text of n tokens that belongs to no row and no block: what a
// probe or a warm-up may send without putting a measured prompt into the
// server's cache. Texts of different names differ; those of one name are
// prefixes of each other.
func (s Source) Filler(name string, n int) Prompt {
	s = s.withDefaults()
	return Prompt{
		length:    max(n, 0),
		blockSize: s.BlockSize,
		own:       key(s.base(fillerDomain, name), 0),
		alphabet:  newAlphabet(s.Low, s.High),
		words:     s.Words.table(),
		text:      s.Text,
	}
}

// A Prompt is known but not spelled out: it costs no memory until one of its
// Append methods writes it, in one form or another, as often as wanted. The
// methods may be called by several goroutines at once. They allocate only to
// grow dst.
type Prompt struct {
	length    int
	blockSize int
	ids       []uint64 // of the blocks, as far as they are named
	blocks    uint64   // the base of their keys
	own       uint64   // the key of what no id covers
	alphabet  alphabet
	words     *wordTable
	text      *Corpus
}

// Len is the length of the prompt in tokens.
func (p Prompt) Len() int { return p.length }

// A run is a piece of a prompt that comes from one key: the draws
// [from, from+n) of it.
type run struct {
	key, from uint64
	n         int
}

// runs cuts the prompt into its blocks.
func (p Prompt) runs() iter.Seq[run] {
	return func(yield func(run) bool) {
		for i, at := 0, 0; at < p.length; i++ {
			r := run{key: p.own, from: uint64(at), n: min(p.blockSize, p.length-at)}
			if i < len(p.ids) {
				r.key, r.from = key(p.blocks, p.ids[i]), 0
			}
			if !yield(r) {
				return
			}
			at += r.n
		}
	}
}
