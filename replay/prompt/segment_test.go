package prompt_test

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"moontide/replay/prompt"
	"moontide/replay/transcript"
	"moontide/trace"
	"moontide/trace/tokenizer"
)

// segments returns the tokens and the text of a prompt, made segment by segment.
func segments(s prompt.Source, p *transcript.Prompt) (ids []uint32, text string) {
	var texts []string
	for g := range p.Segments() {
		part := s.Segment(g, p.Covered())
		ids = part.AppendTokens(ids)
		texts = append(texts, string(part.AppendText(nil)))
	}
	return ids, strings.Join(texts, " ")
}

// Without answers, the segments of a prompt are the prompt, in every form.
func TestSegmentsAreThePrompt(t *testing.T) {
	tok := usual(t).tokenizer(t)
	corpus := corpusOf(t, tok, prose(3000))
	rapid.Check(t, func(t *rapid.T) {
		s := prompt.Source{Seed: rapid.Uint64().Draw(t, "seed"), BlockSize: rapid.IntRange(1, 40).Draw(t, "block size")}
		if rapid.Bool().Draw(t, "passages") {
			s.Text = corpus
		}
		r := trace.Request{InputLength: rapid.IntRange(0, 300).Draw(t, "ISL"), HashIDs: rapid.SliceOfN(rapid.Uint64Range(1, 5), 0, 8).Draw(t, "ids")}
		row := rapid.IntRange(0, 9).Draw(t, "row")
		ids, text := segments(s, transcript.New(r, row, s.BlockSize))
		whole := s.Prompt(r, row)
		if !slices.Equal(ids, whole.AppendTokens(nil)) {
			t.Fatalf("token ids %v, want %v", ids, whole.AppendTokens(nil))
		}
		if want := whole.AppendText(nil); !bytes.Equal([]byte(text), want) {
			t.Fatalf("text %q, want %q", text, want)
		}
	})
}

// After an answer of any length, the tokens that follow are those of the trace at
// their places, and a passage cut there has as many tokens as asked for.
func TestSegmentsAfterAnswers(t *testing.T) {
	tok := usual(t).tokenizer(t)
	corpus := corpusOf(t, tok, prose(3000))
	rapid.Check(t, func(t *rapid.T) {
		s := prompt.Source{BlockSize: rapid.IntRange(5, 40).Draw(t, "block size")}
		first := trace.Request{InputLength: rapid.IntRange(1, 150).Draw(t, "ISL"), HashIDs: []uint64{1, 2, 3, 4, 5}}
		second := trace.Request{InputLength: first.InputLength + rapid.IntRange(1, 150).Draw(t, "more"), HashIDs: []uint64{1, 2, 3, 4, 5, 6, 7}}
		answer := rapid.IntRange(0, 160).Draw(t, "answer")
		p, _ := transcript.New(first, 0, s.BlockSize).Continue(transcript.Generated{Tokens: answer}, second, 1)
		want := s.Prompt(second, 1).AppendTokens(nil)
		at := 0
		for g := range p.Segments() {
			if g.Kind != transcript.Reply {
				covered := transcript.New(second, 1, s.BlockSize).Covered()
				if g.Kind == transcript.Own && g.ID == 0 {
					covered = transcript.New(first, 0, s.BlockSize).Covered()
				} else if ids := s.Segment(g, covered).AppendTokens(nil); !slices.Equal(ids, want[at:at+g.Len]) {
					t.Fatalf("segment %+v at %d has other tokens", g, at)
				}
				checkTokens(t, tok, prompt.Source{BlockSize: s.BlockSize, Text: corpus}, g, covered)
			}
			at += g.Len
		}
	})
}

func checkTokens(t *rapid.T, tok *tokenizer.Tokenizer, s prompt.Source, g transcript.Segment, covered int) {
	text := string(s.Segment(g, covered).AppendText(nil))
	text = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(text)
	ids, err := tok.Append(nil, " "+text)
	if err != nil || len(ids) != g.Len || strings.TrimSpace(text) != text {
		t.Fatalf("segment %+v has %d tokens, %v: %q", g, len(ids), err, text)
	}
}

// Ids of all vocabularies, and beyond those that are written in the fast way.
func TestJSONIDs(t *testing.T) {
	ids, want := []uint32{math.MaxUint32}, []byte("x[4294967295")
	for id := range uint32(1_100_000) {
		ids, want = append(ids, id), strconv.AppendUint(append(want, ','), uint64(id), 10)
	}
	if got := prompt.AppendJSONIDs([]byte("x"), ids); !bytes.Equal(got, append(want, ']')) {
		t.Error("the ids are others")
	}
	if got := prompt.AppendJSONIDs(nil, nil); string(got) != "[]" {
		t.Errorf("no ids are %s", got)
	}
}
