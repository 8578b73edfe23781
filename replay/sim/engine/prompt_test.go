package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// tokensOf returns the tokens of a row's prompt: those of an id are a function of the id,
// and those that no id covers belong to the row alone.
func tokensOf(r Row) []uint64 {
	tokens := make([]uint64, r.ISL)
	for i := range tokens {
		if block := i / r.BlockSize; block < len(r.HashIDs) {
			tokens[i] = mix(r.HashIDs[block], uint64(i%r.BlockSize))
		} else {
			tokens[i] = mix(1<<40+uint64(r.Number), uint64(i))
		}
	}
	return tokens
}

func common(a, b []uint64) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Prompts made from ids share the same blocks as those received token by token.
func TestTracePromptAgainstTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		traceBlock, engineBlock := rapid.IntRange(1, 7).Draw(t, "trace block"), rapid.IntRange(1, 5).Draw(t, "engine block")
		var fromIDs, fromTokens []*Prompt
		for i := range rapid.IntRange(2, 8).Draw(t, "rows") {
			r := Row{
				ISL: rapid.IntRange(0, 40).Draw(t, "ISL"), HashIDs: rapid.SliceOfN(rapid.Uint64Range(0, 2), 0, 9).Draw(t, "ids"),
				BlockSize: traceBlock, Number: i,
			}
			fromIDs = append(fromIDs, TracePrompt(r, engineBlock))
			fromTokens = append(fromTokens, promptOf(engineBlock, tokensOf(r)...))
		}
		places := map[uint64]int{}
		for i := range fromIDs {
			for k, hash := range fromIDs[i].blocks {
				if before, seen := places[hash]; seen && before != k {
					t.Fatalf("blocks %d and %d have the same hash", before, k)
				}
				places[hash] = k
			}
			if a, b := fromIDs[i], fromTokens[i]; a.Len() != b.Len() || len(a.blocks) != len(b.blocks) {
				t.Fatalf("row %d: %d tokens in %d blocks by ids, %d in %d by tokens", i, a.Len(), len(a.blocks), b.Len(), len(b.blocks))
			}
			for k := range i {
				byIDs, byTokens := common(fromIDs[i].blocks, fromIDs[k].blocks), common(fromTokens[i].blocks, fromTokens[k].blocks)
				if byIDs != byTokens {
					t.Fatalf("rows %d and %d share %d blocks by ids, %d by tokens", k, i, byIDs, byTokens)
				}
			}
		}
	})
}

func TestBlocksOfAnswers(t *testing.T) {
	row := Row{ISL: 20, OSL: 30, HashIDs: []uint64{7, 8}, BlockSize: 16, CacheAnswer: true}
	plain := row
	plain.CacheAnswer = false
	other := row
	other.Number = 1
	p, q, o := TracePrompt(row, 4), TracePrompt(plain, 4), TracePrompt(other, 4)
	// 20 + 29 tokens are in the cache in the end.
	if p.Len() != 20 || len(p.blocks) != 12 || len(q.blocks) != 5 || common(p.blocks, q.blocks) != 5 || common(p.blocks, o.blocks) != 5 {
		t.Errorf("%d tokens in %d blocks, %d without the answer, %d in common with it, %d with another row's",
			p.Len(), len(p.blocks), len(q.blocks), common(p.blocks, q.blocks), common(p.blocks, o.blocks))
	}

	// Over HTTP the answer is known, and the next turn has it in its prompt.
	first, next := NewPrompt(4), NewPrompt(4)
	first.AddText("a b c d e")
	for _, w := range []string{"f", "g", "h"} {
		first.AddAnswer(WordToken(w))
	}
	next.AddText("a b c d e f g h i")
	if first.Len() != 5 || !slices.Equal(first.blocks, next.blocks[:2]) {
		t.Errorf("%d tokens, blocks %x, of the next turn %x", first.Len(), first.blocks, next.blocks)
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
