package format

import (
	"fmt"

	"moontide/trace/log"
)

// textSize are the prompts whose tokens the log tells, in bytes and tokens.
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

// textSizes are the tokens of requests by their bytes per token, in steps.
type textSizes struct {
	requests, tokens int
	bySize           [mostBytes*stepsPerByte + 1]int
}

func (s *textSizes) add(bytes, tokens int) {
	s.requests++
	s.tokens += tokens
	s.bySize[min(max(bytes*stepsPerByte/tokens, 1), mostBytes*stepsPerByte)] += tokens
}

// median returns the median of the tokens, or false if there are too few requests.
func (s *textSizes) median() (bytes float64, ok bool) {
	below, step := 0, 0
	for ; step < len(s.bySize)-1 && 2*(below+s.bySize[step]) < s.tokens; step++ {
		below += s.bySize[step]
	}
	return float64(step) / stepsPerByte, s.requests >= leastMeasured
}

// measureTexts sets the bytes per token to those that the log counts, of each model that has
// enough requests.
func (l *requestLog) measureTexts() {
	if !l.assumed {
		return
	}
	var all textSizes
	models := map[string]*textSizes{}
	for i := 0; i < len(l.spots); i += 1 + len(l.spots)/measuredRequests {
		bytes, tokens, model := l.textOf(&l.spots[i])
		if tokens == 0 {
			continue
		}
		if models[model] == nil {
			models[model] = new(textSizes)
		}
		all.add(bytes, tokens)
		models[model].add(bytes, tokens)
	}
	size, ok := all.median()
	if l.assumed = ok; !ok {
		return
	}
	l.cfg.BytesPerToken, l.cfg.ModelBytes = size, map[string]float64{}
	for model, of := range models {
		if size, ok := of.median(); ok {
			l.cfg.ModelBytes[model] = size
		}
	}
	l.ids = log.NewHasher(l.cfg)
}

// textOf returns the bytes of a prompt that is a text, its tokens by the log, and its model;
// 0 tokens if the log lacks one of them.
func (l *requestLog) textOf(s *spot[logged]) (bytes, tokens int, model string) {
	raw, err := l.readAt(s.file, s.offset, s.length)
	if err != nil {
		return 0, 0, "" // it is reported when the row is read
	}
	e, err := l.parse(raw, s.about)
	if err != nil || e.Prompt != log.HasPrompt || !e.Input.Set {
		return 0, 0, ""
	}
	call, err := l.read.ReadMembers(e.API, e.Body)
	if err != nil {
		return 0, 0, ""
	}
	if bytes, ok := call.TextLength(); ok {
		return bytes, e.Input.Value, call.Model
	}
	return 0, 0, ""
}

// noteTextSize says how block ids of texts were made without a tokenizer.
func (l *requestLog) noteTextSize() {
	if l.cfg.Encoder != nil {
		return
	}
	least, most := l.cfg.BytesPerToken, l.cfg.BytesPerToken
	for _, size := range l.cfg.ModelBytes {
		least, most = min(least, size), max(most, size)
	}
	text := fmt.Sprintf("block ids of texts are estimated: %.3g", least)
	if most > least {
		text += fmt.Sprintf(" to %.3g", most)
	}
	text += " bytes per token"
	switch {
	case l.assumed:
		text += ", as the log counts; a tokenizer is more exact"
	case l.texts.tokens > 0:
		text += fmt.Sprintf("; the log counts %.3g: with that, or a tokenizer, their sharing is more exact", float64(l.texts.bytes)/float64(l.texts.tokens))
	}
	l.notes.say("%s", text)
}
