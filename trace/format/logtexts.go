package format

import (
	"fmt"
	"slices"

	"moontide/trace/log"
)

// textSize are prompts that are texts and whose tokens the log has, in bytes and tokens.
type textSize struct{ bytes, tokens int }

// The bytes of a token are measured with requests from all over a log.
const (
	measuredRequests = 2000
	leastMeasured    = 20 // fewer tell little
	// Sizes are in steps, and rounded down: logs of the same traffic then agree, and blocks
	// are rather too short than too long. A prefix that is a few bytes short of a block is not
	// shared at all, but of short blocks it only shares a few bytes too many.
	stepsPerByte = 4
	mostBytes    = 100
)

// median returns the median of the bytes per token of texts, by their tokens.
func median(texts []textSize) (bytes float64) {
	steps := func(s textSize) int { return min(max(s.bytes*stepsPerByte/s.tokens, 1), mostBytes*stepsPerByte) }
	slices.SortFunc(texts, func(a, b textSize) int { return steps(a) - steps(b) })
	tokens, below := 0, 0
	for _, s := range texts {
		tokens += s.tokens
	}
	for _, s := range texts {
		if below += s.tokens; 2*below >= tokens {
			return float64(steps(s)) / stepsPerByte
		}
	}
	return 0
}

// measureTexts sets the bytes per token to those that the log counts, if it has enough
// requests.
func (l *requestLog) measureTexts() {
	if !l.assumed {
		return
	}
	var texts []textSize
	for i := 0; i < len(l.spots); i += 1 + len(l.spots)/measuredRequests {
		if size := l.textOf(&l.spots[i]); size.tokens > 0 {
			texts = append(texts, size)
		}
	}
	if l.assumed = len(texts) >= leastMeasured; l.assumed {
		l.cfg.BytesPerToken = median(texts)
		l.read = log.NewReader(l.cfg)
	}
}

// textOf returns the size of a prompt that is a text and whose tokens the log has.
func (l *requestLog) textOf(s *spot[logged]) textSize {
	raw, err := l.records.read(s.record)
	if err != nil {
		return textSize{} // it is reported when the row is read
	}
	e, err := l.parse(raw, s.about)
	if err != nil || e.Prompt != log.HasPrompt || !e.Input.Set {
		return textSize{}
	}
	call, err := l.read.ReadMembers(e.API, e.Body)
	if err != nil {
		return textSize{}
	}
	bytes, ok := call.TextLength()
	if !ok {
		return textSize{}
	}
	return textSize{bytes, e.Input.Value}
}

// noteTextSize says how block ids of texts were made without a tokenizer.
func (l *requestLog) noteTextSize() {
	if l.cfg.Encoder != nil {
		return
	}
	text := fmt.Sprintf("block ids of texts are estimated: %.3g bytes per token", l.cfg.BytesPerToken)
	switch {
	case l.assumed:
		text += ", as the log counts; a tokenizer is more exact"
	case l.texts.tokens > 0:
		text += fmt.Sprintf("; the log counts %.3g: with that, or a tokenizer, their sharing is more exact", float64(l.texts.bytes)/float64(l.texts.tokens))
	}
	l.notes.say("%s", text)
}
