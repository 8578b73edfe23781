package prompt

import (
	"cmp"
	"fmt"
	"iter"

	"moontide/replay/transcript"
	"moontide/trace"
)

// Defaults of a [Source].
const (
	DefaultBlockSize = 512    // tokens
	DefaultLow       = 1_000  // above the control tokens of the usual vocabularies
	DefaultHigh      = 30_000 // within all these vocabularies
)

// minSpan is the minimum number of token ids to draw from. Servers share prefixes
// in units of 16 tokens or more: with 256 ids these are 128 random bits, so that
// different blocks do not share a beginning.
const minSpan = 256

// Source generates prompts. It has no state: equal fields make equal prompts on
// every machine, and it is safe for concurrent use. The zero Source is ready to
// use.
type Source struct {
	// Seed and Salt determine the content. By convention the seed identifies the
	// experiment and the salt the run: another salt avoids hits in a server's
	// cache from an earlier run.
	Seed      uint64
	Salt      string
	BlockSize int     // tokens per block id; 0 is DefaultBlockSize
	Low, High uint32  // token ids are in [Low, High); 0 is DefaultLow and DefaultHigh
	Words     *Words  // nil means the list of this package
	Text      *Corpus // if not nil, text consists of its passages instead of words
}

// Validate returns an error for a negative block size or fewer than 256 token ids.
// Prompts of an invalid Source have the right length but unspecified content.
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

// TokenRange returns Low and High, or their defaults.
func (s Source) TokenRange() (low, high uint32) {
	s = s.withDefaults()
	return s.Low, s.High
}

func (s Source) withDefaults() Source {
	if s.BlockSize <= 0 {
		s.BlockSize = DefaultBlockSize
	}
	s.Low, s.High = cmp.Or(s.Low, DefaultLow), cmp.Or(s.High, DefaultHigh)
	return s
}

// Prompt returns the prompt of a request, with exactly r.InputLength tokens. row
// is its index in the trace. It matters only if the ids do not cover the prompt,
// and must then be unique among all rows that are replayed together, in all
// shards. The Prompt refers to r.HashIDs.
func (s Source) Prompt(r trace.Request, row int) Prompt {
	p := s.prompt(r.InputLength)
	p.blocks, p.blockKeys, p.covered = r.HashIDs, s.base(blockDomain, ""), len(r.HashIDs)*p.blockSize
	p.ownKey = key(s.base(rowDomain, ""), uint64(row))
	return p
}

// Filler returns a prompt of n tokens that shares nothing with rows and blocks,
// for probes and warm-up requests. Fillers with different names differ; those with
// the same name are prefixes of each other.
func (s Source) Filler(name string, n int) Prompt {
	p := s.prompt(n)
	p.ownKey = key(s.base(fillerDomain, name), 0)
	return p
}

func (s Source) prompt(length int) Prompt {
	s = s.withDefaults()
	return Prompt{length: max(length, 0), blockSize: s.BlockSize, ids: newIDRange(s.Low, s.High), words: s.Words.table(), text: s.Text}
}

// Prompt is a prompt that is generated when one of its Append methods is called.
// They are safe for concurrent use and allocate only to grow dst.
type Prompt struct {
	length    int
	blockSize int
	blocks    []uint64 // ids of the leading blocks
	blockKeys uint64   // base of their keys
	ownKey    uint64   // key of the tokens not covered by ids
	covered   int      // tokens covered by ids
	segment   run      // if not empty, the whole prompt: see Segment
	ids       idRange
	words     *wordTable
	text      *Corpus
}

// Len returns the length of the prompt in tokens.
func (p Prompt) Len() int { return p.length }

// run is a piece of a prompt: the draws [from, from+n) of a key.
type run struct {
	key, from uint64
	n         int
}

// runs returns the runs of the prompt.
func (p Prompt) runs() iter.Seq[run] {
	return func(yield func(run) bool) {
		if p.segment.n > 0 {
			yield(p.segment)
			return
		}
		for i, at := 0, 0; at < p.length; i++ {
			r := run{key: p.ownKey, from: uint64(at), n: min(p.blockSize, p.length-at)}
			if i < len(p.blocks) {
				r.key, r.from = key(p.blockKeys, p.blocks[i]), 0
			}
			if !yield(r) {
				return
			}
			at += r.n
		}
	}
}

// Segment returns the content of a segment of a prompt with live answers, other than
// of an answer: of a block id, or of a row whose block ids cover its first covered
// tokens. Segments of a prompt without answers, one after the other, are the prompt
// that Prompt returns; as texts, they are joined by spaces.
//
// If a text starts within a word of a passage, other words of one token each take the
// place of the rest of that word.
func (s Source) Segment(g transcript.Segment, covered int) Prompt {
	p := s.prompt(g.Len)
	r := run{key: key(s.base(blockDomain, ""), g.ID), from: uint64(g.From), n: p.length}
	if g.Kind == transcript.Own {
		r.key = key(s.base(rowDomain, ""), g.ID)
		p.ownKey, p.covered = r.key, covered
	}
	p.segment = r
	return p
}

// appendWordRest appends other words in place of the rest of a word within which a run
// starts: encoded apart, that could have another number of tokens.
func (c *Corpus) appendWordRest(dst []byte, r run) ([]byte, run) {
	if r.from <= nameWords {
		return dst, r
	}
	at := c.tokenOf(r)
	for ; r.n > 0 && c.text[c.offset(at)] != ' '; r.n-- {
		dst = append(dst, ' ')
		dst = c.words.appendWord(dst, draw(r.key, r.from)>>(64-wordBits))
		r.from++
		at = (at + 1) % len(c.lengths)
	}
	return dst, r
}
