package engine

import (
	"slices"
	"testing"

	"moontide/replay/transcript"
	"moontide/trace"
)

// traceRow is a row of a trace with blocks of 16 tokens.
func traceRow(number, isl int, ids ...uint64) *transcript.Prompt {
	return transcript.New(trace.Request{InputLength: isl, HashIDs: ids}, number, 16)
}

func common(a, b []uint64) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func TestBlocksOfAnswers(t *testing.T) {
	row, other := traceRow(0, 20, 7, 8), traceRow(1, 20, 7, 8)
	p, q, o := TracePrompt(row, 29, 4), TracePrompt(row, 0, 4), TracePrompt(other, 29, 4)
	if p.Len() != 20 || len(p.blocks) != 12 || len(q.blocks) != 5 || common(p.blocks, q.blocks) != 5 || common(p.blocks, o.blocks) != 5 {
		t.Errorf("%d tokens in %d blocks, %d without the answer, %d in common with it, %d with another row's",
			p.Len(), len(p.blocks), len(q.blocks), common(p.blocks, q.blocks), common(p.blocks, o.blocks))
	}
	next, _ := row.Continue(transcript.Generated{Tokens: 30}, trace.Request{InputLength: 60, HashIDs: []uint64{7, 9, 10, 11}}, 2)
	if n := common(p.blocks, TracePrompt(next, 0, 4).blocks); n != 12 {
		t.Errorf("the next turn shares %d blocks with the prompt and its answer, want 12", n)
	}

	// Over HTTP the answer is known, and the next turn has it in its prompt.
	first, second := NewPrompt(4), NewPrompt(4)
	first.AddText("a b c d e")
	for _, w := range []string{"f", "g", "h"} {
		first.AddAnswer(WordToken(w))
	}
	second.AddText("a b c d e f g h i")
	if first.Len() != 5 || !slices.Equal(first.blocks, second.blocks[:2]) {
		t.Errorf("%d tokens, blocks %x, of the next turn %x", first.Len(), first.blocks, second.blocks)
	}
}

func TestTextTokens(t *testing.T) {
	whole, parts := NewPrompt(2), NewPrompt(2)
	whole.AddText(" one  two\tthree\nfour ")
	parts.AddText("one two")
	parts.AddText("three four")
	if whole.Len() != 4 || !slices.Equal(whole.blocks, parts.blocks) || whole.Hash() != parts.Hash() {
		t.Errorf("the same four words differ: %d tokens %x, %d tokens %x", whole.Len(), whole.blocks, parts.Len(), parts.blocks)
	}
	other := NewPrompt(2)
	other.AddText("one two three five")
	if other.Hash() == whole.Hash() || other.blocks[0] != whole.blocks[0] || other.blocks[1] == whole.blocks[1] {
		t.Error("a prompt with another last word must differ in its last block only")
	}
}
