// Package transcript builds the prompts of a conversation that contain earlier answers of
// the server.
//
// A trace says how long each prompt is and, by block ids, which of its beginnings
// other prompts share. It does not say what earlier answers were. A prompt with live
// answers is the trace's prompt in which the tokens of earlier answers are replaced,
// each at its place: the prompt of a turn, then the answer to it, then the next turn's
// new tokens. Every other token stays as in the trace, so lengths and shared prefixes
// do too: a longer answer takes the place of new tokens, and after a shorter one there
// are more of them.
//
//	first := transcript.New(row0, 0, blockSize)
//	second, turn := first.Continue(transcript.Generated{Tokens: 61}, row1, 1)
//	for segment := range second.Segments() { ... }
//
// Package prompt makes the tokens and texts of these segments; packages engine and run
// hash their blocks to find what a cache has of them.
package transcript

import (
	"iter"
	"math/bits"
	"slices"

	"moontide/trace"
	"moontide/trace/block"
)

// Kind is the kind of a [Source].
type Kind uint8

// The kinds of sources.
const (
	Block Kind = iota // the content of a block id
	Own               // the content of a prompt that is not covered by block ids
	Reply             // what the server generated for a row
)

// Source is where tokens come from: those of one source are different from those of
// any other.
type Source struct {
	Kind Kind
	ID   uint64 // block id, or number of the row
	From int    // the first token: of the block, of the row's prompt, or of the answer
}

// Segment is a run of tokens from one source.
type Segment struct {
	Source
	Len int
}

// piece is a segment that replaces tokens of the trace, at a place of the prompt.
type piece struct {
	Segment
	at int
}

func (p piece) end() int { return p.at + p.Len }

// Prompt is the content of the prompt of a row. It is immutable.
type Prompt struct {
	Row       int // its number in the trace, from 0
	Len       int // tokens
	Session   string
	blockSize int
	ids       []uint64
	pieces    []piece // in order, disjoint
}

// New returns the prompt of a row as the trace has it. It refers to r.HashIDs.
func New(r trace.Request, row, blockSize int) *Prompt {
	return &Prompt{Row: row, Len: r.InputLength, Session: r.SessionID, blockSize: max(blockSize, 1), ids: r.HashIDs}
}

// Covered returns how many tokens the block ids of the row cover. Tokens beyond are
// its own.
func (p *Prompt) Covered() int { return len(p.ids) * p.blockSize }

// Generated is what a request generated.
type Generated struct {
	Tokens  int // that the next prompt can hold
	Dropped int // generated before these and not part of the next prompt: reasoning
}

// Turn describes a prompt that continues another.
type Turn struct {
	block.Relation
	Shared int // leading tokens shared with the prompt before and its answer
	Answer int // of Shared, those of the answer
	Cut    int // tokens of the answer for which the prompt has no room
}

// Continue returns the prompt of a row that continues p, to which the server has
// generated answer a. Its last token is never one of an answer.
func (p *Prompt) Continue(a Generated, r trace.Request, row int) (*Prompt, Turn) {
	next := New(r, row, p.blockSize)
	turn := Turn{Relation: p.relation(r)}
	switch turn.Relation {
	case block.Unknown:
	case block.Extends:
		turn.Answer = min(a.Tokens, r.InputLength-p.Len-1)
		turn.Cut = a.Tokens - turn.Answer
		turn.Shared = p.Len + turn.Answer
		next.pieces = p.piecesOf(p.Len, p.Len/p.blockSize*p.blockSize)
		if turn.Answer > 0 {
			next.pieces = append(next.pieces, piece{Segment{Source{Reply, uint64(p.Row), a.Dropped}, turn.Answer}, p.Len})
		}
	default:
		turn.Shared = min(p.sameBlocks(r)*p.blockSize, p.Len, r.InputLength)
		if turn.Shared == r.InputLength && p.endsAnswered(turn.Shared) {
			turn.Shared--
		}
		next.pieces = p.piecesOf(turn.Shared, turn.Shared)
	}
	return next, turn
}

// endsAnswered reports whether the last of the first tokens is that of an answer.
func (p *Prompt) endsAnswered(tokens int) bool {
	return slices.ContainsFunc(p.pieces, func(q piece) bool { return q.Kind == Reply && q.at < tokens && tokens <= q.end() })
}

// relation returns how a row relates to p.
func (p *Prompt) relation(r trace.Request) block.Relation {
	return block.RelationOf(r.InputLength, p.Len, p.blockSize, func(place int) (same, known bool) {
		known = place < min(len(p.ids), len(r.HashIDs))
		return known && p.ids[place] == r.HashIDs[place], known
	})
}

// sameBlocks returns the number of leading blocks that a row has in common with p.
func (p *Prompt) sameBlocks(r trace.Request) int {
	n := 0
	for n < min(len(p.ids), len(r.HashIDs)) && p.ids[n] == r.HashIDs[n] {
		n++
	}
	return n
}

// piecesOf returns the pieces of the first tokens of p: its own, and from the given
// token on everything, because there the trace's tokens of another row differ.
func (p *Prompt) piecesOf(tokens, from int) (pieces []piece) {
	for q, live := range p.placed() {
		end := min(q.end(), tokens)
		switch {
		case q.at >= tokens:
			return pieces
		case !live && end <= from:
			continue
		case !live && q.at < from:
			q.From, q.at = q.From+from-q.at, from
		}
		q.Len = end - q.at
		pieces = append(pieces, q)
	}
	return pieces
}

// Base returns which of the prompts that a row waits for it continues: the latest one of
// its session, else the longest one that it extends, or nil.
func Base(r trace.Request, waited []*Prompt) *Prompt {
	var base *Prompt
	for _, p := range waited {
		own := p.Session == r.SessionID && r.SessionID != ""
		extends := p.Len >= p.blockSize && p.relation(r) == block.Extends
		switch {
		case own && (base == nil || base.Session != r.SessionID || base.Row < p.Row):
			base = p
		case !own && extends && (base == nil || base.Session != r.SessionID && base.Len < p.Len):
			base = p
		}
	}
	return base
}

// Live reports whether the prompt has tokens that are not the trace's.
func (p *Prompt) Live() bool { return len(p.pieces) > 0 }

// Segments returns the content of the prompt in order. Neighbours are of different
// sources.
func (p *Prompt) Segments() iter.Seq[Segment] {
	return func(yield func(Segment) bool) {
		var last Segment
		for s := range p.placed() {
			if s.Kind == last.Kind && s.ID == last.ID && s.From == last.From+last.Len && last.Len > 0 {
				last.Len += s.Len
				continue
			}
			if last.Len > 0 && !yield(last) {
				return
			}
			last = s.Segment
		}
		if last.Len > 0 {
			yield(last)
		}
	}
}

// placed returns the pieces with live set and, between them, the trace's tokens by block.
func (p *Prompt) placed() iter.Seq2[piece, bool] {
	return func(yield func(q piece, live bool) bool) {
		pieces := p.pieces
		for at := 0; at < p.Len; {
			if len(pieces) > 0 && pieces[0].at == at {
				if !yield(pieces[0], true) {
					return
				}
				at, pieces = pieces[0].end(), pieces[1:]
				continue
			}
			q, end := piece{Segment{Source: Source{Own, uint64(p.Row), at}}, at}, p.Len
			if block := at / p.blockSize; block < len(p.ids) {
				q.Source = Source{Block, p.ids[block], at - block*p.blockSize}
				end = min(end, (block+1)*p.blockSize)
			}
			if len(pieces) > 0 {
				end = min(end, pieces[0].at)
			}
			q.Len = end - at
			if !yield(q, false) {
				return
			}
			at = end
		}
	}
}

// Blocks returns a hash for each full block of size tokens of the prompt and the first
// generated tokens of its answer. A hash covers the block and all tokens before it, so
// two prompts that begin alike have the same first hashes. The size need not be that
// of the trace's blocks.
func (p *Prompt) Blocks(size, generated int) []uint64 {
	hashes := make([]uint64, 0, (p.Len+generated)/size)
	chain, at := uint64(0), 0
	add := func(s Segment) {
		chain = mix(mix(chain, uint64(s.Kind)<<62^uint64(s.From)), s.ID)
		for end := (len(hashes) + 1) * size; end <= at+s.Len; end += size {
			hashes = append(hashes, mix(chain, uint64(end-at)))
		}
		at += s.Len
		chain = mix(chain, uint64(s.Len))
	}
	for s := range p.Segments() {
		add(s)
	}
	if generated > 0 {
		add(Segment{Source{Reply, uint64(p.Row), 0}, generated})
	}
	return hashes
}

// mix returns a hash of a and b.
func mix(a, b uint64) uint64 { return block.Mix(bits.RotateLeft64(a, 25) + block.Gamma*(b+1)) }
