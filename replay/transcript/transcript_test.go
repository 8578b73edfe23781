package transcript_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"moontide/replay/transcript"
	"moontide/trace"
	"moontide/trace/block"
)

// tokensOf lists the tokens of a prompt and the first n of its answer, by name.
func tokensOf(p *transcript.Prompt, n int) (tokens []string) {
	for s := range p.Segments() {
		for i := range s.Len {
			tokens = append(tokens, fmt.Sprint(s.Kind, s.ID, s.From+i))
		}
	}
	for i := range n {
		tokens = append(tokens, fmt.Sprint(transcript.Reply, p.Row, i))
	}
	return tokens
}

func shared[T comparable](a, b []T) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func row(isl int, ids ...uint64) trace.Request {
	return trace.Request{SessionID: "s", InputLength: isl, HashIDs: ids}
}

func TestContinue(t *testing.T) {
	const size = 10
	before := row(25, 1, 2, 3)
	for name, c := range map[string]struct {
		answer transcript.Generated
		next   trace.Request
		want   transcript.Turn
	}{
		"extends":        {transcript.Generated{Tokens: 7}, row(48, 1, 2, 4, 5, 6), transcript.Turn{Relation: block.Extends, Shared: 32, Answer: 7}},
		"no room":        {transcript.Generated{Tokens: 7}, row(30, 1, 2, 4), transcript.Turn{Relation: block.Extends, Shared: 29, Answer: 4, Cut: 3}},
		"nothing to add": {transcript.Generated{Tokens: 7}, row(25, 1, 2, 3), transcript.Turn{Relation: block.Shortened, Shared: 25}},
		"compacted":      {transcript.Generated{Tokens: 7}, row(18, 1, 9), transcript.Turn{Relation: block.Shortened, Shared: 10}},
		"rewritten":      {transcript.Generated{Tokens: 7}, row(60, 1, 9, 8, 7, 6, 5), transcript.Turn{Relation: block.Rewritten, Shared: 10}},
		"unknown":        {transcript.Generated{Tokens: 7}, row(60), transcript.Turn{Relation: block.Unknown}},
		"reasoning":      {transcript.Generated{Tokens: 2, Dropped: 5}, row(48, 1, 2, 4, 5, 6), transcript.Turn{Relation: block.Extends, Shared: 27, Answer: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			first := transcript.New(before, 0, size)
			second, turn := first.Continue(c.answer, c.next, 1)
			if turn != c.want {
				t.Errorf("turn %+v, want %+v", turn, c.want)
			}
			begun := append(tokensOf(first, 0), tokensOf(first, c.answer.Dropped+c.answer.Tokens)[25+c.answer.Dropped:]...)
			tokens := tokensOf(second, 0)
			if n := shared(begun, tokens); n != c.want.Shared {
				t.Errorf("%d tokens shared, want %d", n, c.want.Shared)
			}
			if plain := tokensOf(transcript.New(c.next, 1, size), 0); len(tokens) != len(plain) || !slices.Equal(tokens[turn.Shared:], plain[turn.Shared:]) {
				t.Error("the new tokens are not the trace's")
			}
		})
	}
}

// A compacted prompt that ends where an answer did has the trace's token there: what
// comes last is never an answer.
func TestLastTokenIsNoAnswer(t *testing.T) {
	const size = 10
	second, _ := transcript.New(row(15, 1, 2), 0, size).Continue(transcript.Generated{Tokens: 5}, row(35, 1, 3, 4, 5), 1)
	for isl, want := range map[int]int{10: 10, 16: 15, 18: 17, 20: 19, 21: 21, 30: 30} {
		third, turn := second.Continue(transcript.Generated{Tokens: 9}, row(isl, 1, 3, 4), 2)
		tokens := tokensOf(third, 0)
		if n := shared(tokens, tokensOf(second, 0)); n != want || turn.Shared != want || len(tokens) != isl {
			t.Errorf("a prompt of %d tokens shares %d, and says %d; want %d", isl, n, turn.Shared, want)
		}
	}
}

// Blocks of any size begin alike exactly as far as the tokens do.
func TestBlocksAgreeWithTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		block := rapid.IntRange(1, 7).Draw(t, "trace block")
		size := rapid.IntRange(1, 9).Draw(t, "block")
		type sequence struct {
			prompt *transcript.Prompt
			n      int // generated
		}
		var all []sequence
		next := uint64(100)
		for range rapid.IntRange(1, 3).Draw(t, "sessions") {
			ids := []uint64{1, 2}[:rapid.IntRange(0, 2).Draw(t, "system blocks")]
			isl := len(ids) * block
			var p *transcript.Prompt
			var got transcript.Generated
			for range rapid.IntRange(1, 5).Draw(t, "turns") {
				ids = slices.Clone(ids[:min(len(ids), max(isl/block-rapid.IntRange(-3, 1).Draw(t, "back"), 0))])
				isl = max(len(ids)*block, isl) + rapid.IntRange(1, 20).Draw(t, "new")
				for covered := rapid.Bool().Draw(t, "ids to the end"); len(ids) < isl/block || covered && len(ids)*block < isl; next++ {
					ids = append(ids, next)
				}
				r := trace.Request{SessionID: "s", InputLength: isl, HashIDs: ids}
				if p == nil {
					p = transcript.New(r, len(all), block)
				} else {
					p, _ = p.Continue(got, r, len(all))
				}
				n := rapid.IntRange(0, 12).Draw(t, "generated")
				got.Dropped = rapid.IntRange(0, n).Draw(t, "dropped") * rapid.IntRange(0, 1).Draw(t, "drops")
				got.Tokens = n - got.Dropped
				all = append(all, sequence{p, n})
			}
		}
		for _, a := range all {
			for _, b := range all {
				tokens := shared(tokensOf(a.prompt, a.n), tokensOf(b.prompt, b.n))
				if got := shared(a.prompt.Blocks(size, a.n), b.prompt.Blocks(size, b.n)); got != tokens/size {
					t.Fatalf("%d blocks of %d in common, but %d tokens", got, size, tokens)
				}
			}
		}
	})
}

func TestBase(t *testing.T) {
	const size = 10
	of := func(session string, number, isl int, ids ...uint64) *transcript.Prompt {
		return transcript.New(trace.Request{SessionID: session, InputLength: isl, HashIDs: ids}, number, size)
	}
	own, older := of("s", 5, 20, 7, 8), of("s", 4, 10, 7)
	short, long, other := of("x", 6, 10, 1), of("y", 7, 25, 1, 2, 3), of("z", 8, 20, 1, 9)
	next := row(40, 1, 2, 4, 5)
	for _, c := range []struct {
		waited []*transcript.Prompt
		want   *transcript.Prompt
	}{
		{nil, nil},
		{[]*transcript.Prompt{short, own, older, long}, own},
		{[]*transcript.Prompt{short, other, long}, long},
		{[]*transcript.Prompt{other}, nil},
	} {
		if got := transcript.Base(next, c.waited); got != c.want {
			t.Errorf("base %+v, want %+v", got, c.want)
		}
	}
}
