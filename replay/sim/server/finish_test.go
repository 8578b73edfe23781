package server

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// limits is everything that can end an answer.
type limits struct {
	lengthLimits
	stops stopStrings
}

func (l limits) finish(w wording, seed uint64) finish {
	return finishOf(w, seed, l.lengthLimits, l.stops)
}

// answered is what a client sees of an answer with stop strings, by vLLM's rule:
// after each token beyond min_tokens the text is searched for each stop string in
// turn, and cut before the first one found.
func answered(w wording, s limits, seed uint64) (text string, tokens int, stop string) {
	tokens, _ = s.length(seed)
	for k := range tokens {
		before := len(text)
		text += w.word(k)
		if k < s.minTokens {
			continue
		}
		for _, stop := range s.stops.strings {
			from := max(0, before-len(stop)+1)
			if i := strings.Index(text[from:], stop); i >= 0 {
				if s.stops.include {
					i += len(stop)
				}
				return text[:from+i], k + 1, stop
			}
		}
	}
	return text, tokens, ""
}

func TestAnswerEndsAtStopStrings(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		w := plainWords.wording(seed, rapid.SampledFrom([]int{0, 5, 64, 128}).Draw(rt, "reasoning"))
		s := limits{
			lengthLimits: lengthLimits{
				maxTokens: rapid.IntRange(1, 400).Draw(rt, "max"), minTokens: rapid.IntRange(0, 300).Draw(rt, "min"),
				ignoreEOS: rapid.Bool().Draw(rt, "ignore EOS"),
			},
			stops: stopStrings{include: rapid.Bool().Draw(rt, "include")},
		}
		var all strings.Builder // text from which most stop strings are taken
		for k := range 200 {
			all.WriteString(w.word(k))
		}
		for range rapid.IntRange(1, 3).Draw(rt, "stops") {
			from, n := rapid.IntRange(0, all.Len()-1).Draw(rt, "from"), rapid.IntRange(1, 60).Draw(rt, "bytes")
			s.stops.strings = append(s.stops.strings, all.String()[from:min(from+n, all.Len())])
		}
		if rapid.Bool().Draw(rt, "none") {
			s.stops.strings = []string{"0", " no such words"}
		}
		text, tokens, stop := answered(w, s, seed)
		a := answer{api: &completionAPI, wording: w, finish: s.finish(w, seed)}
		got := ""
		for k := range a.finish.tokens {
			got += a.text(k)
		}
		if got != text || a.finish.tokens != tokens || a.finish.stop != stop || (stop != "") && a.finish.reason != FinishStop {
			rt.Errorf("%q, %+v\nwant %q, %d tokens, %q", got, a.finish, text, tokens, stop)
		}
		if whole := string(a.api.appendWhole(nil, &a, usage{prompt: 1})); !strings.Contains(whole, `"text":"`+text+`"`) {
			rt.Errorf("whole: %s, want %q", whole, text)
		}
	})
}

// Only the last event, with the finish reason, may have no text.
func TestStoppedStream(t *testing.T) {
	w := plainWords.wording(0, 0)
	word := w.word
	s := limits{lengthLimits: lengthLimits{maxTokens: 100, ignoreEOS: true}, stops: stopStrings{strings: []string{word(3)[2:] + word(4) + word(5)}}}
	a := answer{api: &completionAPI, id: "x", model: `"m"`, wording: w, finish: s.finish(w, 0)}
	a.api.begin(&a)
	var texts []string
	var b []byte
	for k := range a.finish.tokens {
		b = a.api.appendToken(nil, &a, k, usage{}, 0)
		if len(b) > 0 {
			_, rest, _ := strings.Cut(string(b), `"text":"`)
			text, _, _ := strings.Cut(rest, `"`)
			texts = append(texts, text)
		}
	}
	if want := []string{word(0), word(1), word(2), word(3)[:2], ""}; !slices.Equal(texts, want) {
		t.Errorf("%q, want %q", texts, want)
	}
	if want := `"finish_reason":"stop","stop_reason":"` + s.stops.strings[0] + `"}]}`; !strings.Contains(string(b), want) {
		t.Errorf("%s\nhas no %s", b, want)
	}
}
