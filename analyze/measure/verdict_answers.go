package measure

import (
	"cmp"
	"fmt"
	"strings"
)

// minStreamable is a number of tokens that no engine sends at once. A few at once are usual
// with speculative decoding or a server that collects tokens.
const minStreamable = 16

func (v *Verdict) checkPrompts(r *Result) {
	l := r.Lengths
	if l.Prompts > 0 {
		meant := "the trace's ISL"
		if l.Template > 0 {
			meant += fmt.Sprintf(" plus %d template tokens", l.Template)
		}
		if meant += " by more than 1 %"; l.AsText > 0 {
			meant += " and a quarter of their answers as text"
		}
		v.share("prompt_lengths", l.PromptsOff, l.Prompts, limit(r.Thresholds.MaxPromptsOff), "prompts differ from "+meant+" (server's count)",
			"send token ids, or use the tokenizer of the served model")
	}
	if l.AsText > 0 {
		v.note("prompt_lengths", Valid, "%d prompts contain answers as text, which encodes to other tokens than were generated: %+d tokens in all (%s of the input)",
			l.AsText, l.TextTokens, percent(float64(l.TextTokens)/float64(max(r.Input, 1))))
	}
	v.unverified("prompt_lengths", r.Completed-l.Estimated-l.Prompts, r.Completed-l.Estimated, r.Thresholds.MaxPromptsOff, "prompt")
	if l.Estimated > 0 {
		v.note("prompt_lengths", Valid, "%d prompts not compared with the server's count, because their ISL is estimated in the trace", l.Estimated)
	}
}

// checkAnswers checks the lengths of answers, which may be shorter unless enforced.
func (v *Verdict) checkAnswers(r *Result) {
	l := r.Lengths
	off := l.AnswersLonger
	if l.Enforced {
		off += l.AnswersShorter
		v.unverified("answer_lengths", r.Completed-l.Answers, r.Completed, r.Thresholds.MaxAnswersOff, "output")
	}
	if all := max(cmp.Or(l.Answers, r.Completed), off); l.Answers > 0 || off > 0 {
		text := fmt.Sprintf("answers have the wrong length: %d shorter, %d longer", l.AnswersShorter, l.AnswersLonger)
		if !l.Enforced {
			text = fmt.Sprintf("answers are longer than max_tokens, %d shorter", l.AnswersShorter)
		}
		v.share("answer_lengths", off, all, limit(r.Thresholds.MaxAnswersOff), text,
			"the server ignores ignore_eos, min_tokens or max_tokens, or its context is too short")
	}
}

// unverified checks the requests without the server's token count, with the limits of
// lengths that are off, as theirs may be.
func (v *Verdict) unverified(check string, n, all int, threshold float64, tokens string) {
	what, share, from := strings.ReplaceAll(check, "_", " ")+" are unverified", float64(n)/float64(all), limit(threshold).suspect
	switch {
	case n <= 0:
	case n == all:
		v.note(check, Suspect, "%s: the server does not report %s tokens; enable usage in streams (stream_options.include_usage)", what, tokens)
	default:
		v.note(check, hint(share >= from), "%s for %d of %d requests (%s, SUSPECT from %s): the server does not report their %s tokens",
			what, n, all, percent(share), percent(from), tokens)
	}
}

// checkStreaming checks for answers that arrived at once: their TTFT is the time of the last
// token, their TPOT 0.
func (v *Verdict) checkStreaming(r *Result) {
	if r.Unstreamed == 0 || r.Virtual {
		return
	}
	l := limit(maxUnstreamed)
	share := float64(r.Unstreamed) / float64(r.Streamable)
	v.note("streaming", hint(share >= l.suspect), "%d of %d answers of %d tokens or more arrived all at once (%s, SUSPECT from %s), so TTFT and ITL are not those of the server; look for a buffering proxy, or send fewer tokens at once",
		r.Unstreamed, r.Streamable, minStreamable, percent(share), percent(l.suspect))
}

func (v *Verdict) checkTokenCounts(r *Result) {
	if r.Lengths.Answers > 0 {
		v.share("token_counts", r.Contradicted, r.Completed, limit(maxContradicted).any(), "answers have a token count that contradicts their stream",
			"the server reports wrong usage, so their chunks are counted instead")
	}
}
