package prompt_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"moontide/replay/prompt"
	"moontide/trace"
)

// early is the number of tokens within which different content must differ. Two
// sequences of 256 or more ids agree for longer with probability 2^-64.
const early = 8

func sources(t *rapid.T) prompt.Source {
	low := rapid.Uint32Range(0, 100_000).Draw(t, "low")
	return prompt.Source{
		Seed:      rapid.Uint64().Draw(t, "seed"),
		Salt:      rapid.StringN(0, 20, -1).Draw(t, "salt"),
		BlockSize: rapid.IntRange(1, 40).Draw(t, "block size"),
		Low:       low,
		High:      max(low, prompt.DefaultLow) + rapid.Uint32Range(256, 200_000).Draw(t, "span"),
	}
}

// requests draws rows with no, too few, enough or too many ids.
func requests(t *rapid.T) trace.Request {
	return trace.Request{
		InputLength: rapid.IntRange(0, 300).Draw(t, "ISL"),
		HashIDs:     rapid.SliceOfN(rapid.Uint64(), 0, 12).Draw(t, "ids"),
	}
}

func rows(t *rapid.T) int { return rapid.IntRange(0, 1_000_000).Draw(t, "row") }

func tokens(s prompt.Source, r trace.Request, row int) []uint32 {
	return s.Prompt(r, row).AppendTokens(nil)
}

func commonPrefix(a, b []uint32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Every form has exactly the input length, and the JSON form has the token ids. A
// prompt is the beginning of any longer one, and ids beyond it are ignored.
func TestFormsOfAPrompt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, r, row := sources(t), requests(t), rows(t)
		if rapid.Bool().Draw(t, "wide") {
			s.Low, s.High = rapid.Uint32Range(1, 200_000_000).Draw(t, "low"), math.MaxUint32
		}
		p := s.Prompt(r, row)
		ids := p.AppendTokens([]uint32{42})
		if len(ids) != 1+r.InputLength || ids[0] != 42 || p.Len() != r.InputLength {
			t.Fatalf("%d token ids behind %d, Len %d, want %d", len(ids)-1, ids[0], p.Len(), r.InputLength)
		}
		ids = ids[1:]
		for _, id := range ids {
			if low := max(s.Low, 1); id < low || id >= s.High {
				t.Fatalf("id %d outside [%d, %d)", id, low, s.High)
			}
		}
		want, err := json.Marshal(ids)
		if got := p.AppendJSONTokens([]byte(`"prompt":`)); err != nil || string(got) != `"prompt":`+string(want) {
			t.Fatalf("got %s\nwant %s", got, want)
		}
		text, found := strings.CutPrefix(string(p.AppendWords([]byte("say: "))), "say: ")
		words := strings.Fields(text)
		if !found || len(words) != r.InputLength || strings.Join(words, " ") != text {
			t.Fatalf("%d words, want %d: %q", len(words), r.InputLength, text)
		}

		short := r
		short.InputLength = rapid.IntRange(0, r.InputLength).Draw(t, "shorter ISL")
		short.HashIDs = r.HashIDs[:min((short.InputLength+s.BlockSize-1)/s.BlockSize, len(r.HashIDs))]
		if beginning := tokens(s, short, row); !slices.Equal(beginning, ids[:short.InputLength]) {
			t.Fatalf("token ids are not a prefix: %v of %v", beginning, ids)
		}
		if beginning := string(s.Prompt(short, row).AppendWords(nil)); !strings.HasPrefix(text+" ", beginning) {
			t.Fatalf("words are not a prefix: %q of %q", beginning, text)
		}
	})
}

// Prompts share exactly the prefixes given by the trace, as token ids and as passages:
// rows with different ids after shared ones, and rows without ids for the rest, which is
// unique to each.
func TestRowsShareWhatTheirIDsShare(t *testing.T) {
	tok := usual(t).tokenizer(t)
	corpus := corpusOf(t, tok, prose(3000))
	rapid.Check(t, func(t *rapid.T) {
		s, row := sources(t), rows(t)
		s.BlockSize = max(s.BlockSize, early)
		shared := rapid.SliceOfN(rapid.Uint64(), 0, 6).Draw(t, "shared ids")
		other := rapid.SliceOfNDistinct(rapid.Uint64(), 2, 2, rapid.ID).Draw(t, "different ids")
		want := len(shared) * s.BlockSize
		length := want + rapid.IntRange(early, early+60).Draw(t, "rest")
		for _, tail := range [][]uint64{other, nil} {
			a, b := trace.Request{InputLength: length, HashIDs: shared}, trace.Request{InputLength: length, HashIDs: shared}
			if tail != nil {
				a.HashIDs, b.HashIDs = append(slices.Clone(shared), tail[0]), append(slices.Clone(shared), tail[1])
			}
			one, two := tokens(s, a, row), tokens(s, b, row+1+rows(t))
			passages := s
			passages.Text = corpus
			_, left := said(t, tok, passages, a, row)
			_, right := said(t, tok, passages, b, row+1)
			for _, got := range []int{commonPrefix(one, two), commonPrefix(left, right)} {
				if got < want || got >= want+early {
					t.Fatalf("%d tokens shared, want %d", got, want)
				}
			}
		}
	})
}

// A block has the same content at any position, and as a partial tail, as token ids and as
// a passage.
func TestABlockDependsOnItsIDOnly(t *testing.T) {
	tok := usual(t).tokenizer(t)
	corpus := corpusOf(t, tok, prose(3000))
	rapid.Check(t, func(t *rapid.T) {
		s, id := sources(t), rapid.Uint64().Draw(t, "id")
		before := rapid.SliceOfN(rapid.Uint64(), 1, 5).Draw(t, "ids before")
		at, n := len(before)*s.BlockSize, rapid.IntRange(1, s.BlockSize).Draw(t, "tail")
		alone := trace.Request{InputLength: n, HashIDs: []uint64{id}}
		tail := trace.Request{InputLength: at + n, HashIDs: append(before, id)}
		if a, b := tokens(s, alone, rows(t)), tokens(s, tail, rows(t)); !slices.Equal(b[at:], a) {
			t.Fatalf("block %d says %v, and as a tail %v", id, a, b[at:])
		}
		s.Text = corpus
		full, _ := said(t, tok, s, alone, rows(t))
		if whole, _ := said(t, tok, s, tail, rows(t)); !strings.HasSuffix(whole, " "+full) {
			t.Fatalf("block %d says %q, and in %q not", id, full, whole)
		}
	})
}

func TestSeedAndSaltChangeEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, r, row := sources(t), requests(t), rows(t)
		r.InputLength += early
		bare := trace.Request{InputLength: early}
		seed, salt := s, s
		seed.Seed ^= rapid.Uint64Min(1).Draw(t, "change of seed")
		salt.Salt += rapid.StringN(1, 5, -1).Draw(t, "more salt")
		made := func(s prompt.Source) [][]uint32 {
			return [][]uint32{tokens(s, r, row), tokens(s, bare, row), s.Filler("x", early).AppendTokens(nil)}
		}
		for _, other := range []prompt.Source{seed, salt} {
			others := made(other)
			for i, one := range made(s) {
				if commonPrefix(one, others[i]) >= early {
					t.Fatalf("%+v and %+v make the same prompt, row or filler: %v", s, other, one)
				}
			}
		}
	})
}

func TestFillerIsNoPrompt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sources(t)
		s.BlockSize = early
		name, number := rapid.String().Draw(t, "name"), rows(t)
		split := s // moving a letter from the name to the salt must change the prompt
		split.Salt += "a"
		bare, block := trace.Request{InputLength: early}, trace.Request{InputLength: early, HashIDs: []uint64{uint64(number)}}
		seen := map[string]string{}
		for what, ids := range map[string][]uint32{
			"a filler":         s.Filler("a"+name, early).AppendTokens(nil),
			"another name":     s.Filler("a"+name+"x", early).AppendTokens(nil),
			"a letter of salt": split.Filler(name, early).AppendTokens(nil),
			"a row":            tokens(s, bare, number),
			"a block":          tokens(s, block, number),
		} {
			key := fmt.Sprint(ids)
			if other, known := seen[key]; known || len(ids) != early {
				t.Errorf("%s says the same as %s: %s", what, other, key)
			}
			seen[key] = what
		}
	})
}

// Draws reach both ends of the range and every word of the list.
func TestDrawsReachTheWholeRange(t *testing.T) {
	p := prompt.Source{Low: 5000, High: 6000}.Filler("range", 20_000)
	ids := p.AppendTokens(nil)
	if low, high := slices.Min(ids), slices.Max(ids); low != 5000 || high != 5999 {
		t.Errorf("ids in [%d, %d], want [5000, 5999]", low, high)
	}
	seen := map[string]bool{}
	for word := range strings.FieldsSeq(string(p.AppendWords(nil))) {
		seen[word] = true
	}
	list := strings.Join(slices.Sorted(maps.Keys(seen)), "\n") + "\n"
	const want = "30e4583eaad289e0c67cfea6c34c5a3603230a7ee09ff351d556b9f851bd4a6a"
	if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(list))); len(seen) != prompt.WordCount || sum != want {
		t.Errorf("%d different words with the SHA-256 %s, want %s: every prompt of words would change", len(seen), sum, want)
	}
}

func TestAppendingAllocatesNothingButSpace(t *testing.T) {
	s, r := prompt.Source{Salt: "run"}, trace.Request{InputLength: 3000, HashIDs: []uint64{1, 2, 3}}
	ids, text := make([]uint32, 0, 3000), make([]byte, 0, 100_000)
	for form, write := range map[string]func(p prompt.Prompt){
		"tokens":      func(p prompt.Prompt) { p.AppendTokens(ids) },
		"JSON tokens": func(p prompt.Prompt) { p.AppendJSONTokens(text) },
		"words":       func(p prompt.Prompt) { p.AppendWords(text) },
	} {
		if n := testing.AllocsPerRun(20, func() { write(s.Prompt(r, 1)) }); n != 0 {
			t.Errorf("%s: %v allocations", form, n)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		s    prompt.Source
		want string // in the error
	}{
		{prompt.Source{}, ""},
		{prompt.Source{Low: 1, High: 257}, ""},
		{prompt.Source{BlockSize: -1}, "block size -1"},
		{prompt.Source{Low: 1, High: 256}, "[1, 256)"},
		{prompt.Source{Low: 40_000}, "[40000, 30000)"},
	} {
		err := tc.s.Validate()
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: error %v, want %q", tc.s, err, tc.want)
		}
		if ids := tokens(tc.s, trace.Request{InputLength: 1000, HashIDs: []uint64{1}}, 0); len(ids) != 1000 {
			t.Errorf("%+v: %d ids", tc.s, len(ids))
		}
	}
}

func TestNegativeLengthsAreEmpty(t *testing.T) {
	var s prompt.Source
	for _, p := range []prompt.Prompt{s.Prompt(trace.Request{InputLength: -1}, 0), s.Filler("x", -1), {}} {
		if p.Len() != 0 || len(p.AppendTokens(nil)) != 0 || len(p.AppendWords(nil)) != 0 || string(p.AppendJSONTokens(nil)) != "[]" {
			t.Errorf("%+v is not empty", p)
		}
	}
}
