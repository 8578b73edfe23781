package server

import "strconv"

// answer is an answer to a client, encoded by its API.
type answer struct {
	api     *api
	id      string // without the API's prefix
	created int64  // Unix time in seconds
	model   string // quoted
	wording
	tokens    int // generated
	reason    FinishReason
	reasoning int // number of tokens of reasoning, before the visible text
	maxTokens int // as requested; 0 if not

	// Whether a stream has the usage after the last token, or in each event.
	includeUsage, continuousUsage bool
	tokenIDs                      bool // choices have the ids of their tokens
	stamped                       bool // each event has the time of its writing

	// State of an encoder.
	head              []byte // start of every event
	opening, thinking []byte // start of an event with visible text or reasoning
	sequence          int    // events so far
}

// appendIDs appends the ids of the tokens from..upTo, separated by commas.
func (a *answer) appendIDs(b []byte, from, upTo int) []byte {
	for k := from; k < upTo; k++ {
		if k > from {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, a.wording.token(k), 10)
	}
	return b
}

// part is a part of an answer: its reasoning or its visible text.
type part struct {
	reasoning  bool
	index      int // in the answer
	from, upTo int // tokens
}

// partOf returns the part that token k belongs to.
func (a *answer) partOf(k int) part {
	switch {
	case k < a.reasoning:
		return part{reasoning: true, upTo: a.reasoning}
	case a.reasoning > 0:
		return part{index: 1, from: a.reasoning, upTo: a.tokens}
	}
	return part{upTo: a.tokens}
}

// startsPart reports whether token k is the first one of a part.
func (a *answer) startsPart(k int) bool { return k == 0 || k == a.reasoning }

// parts returns the parts of an answer. There is no visible text if all tokens
// are reasoning.
func (a *answer) parts() (parts []part) {
	for k := 0; k < a.tokens; k = parts[len(parts)-1].upTo {
		parts = append(parts, a.partOf(k))
	}
	return parts
}

// tokenOpening returns the start of the event of token k.
func (a *answer) tokenOpening(k int) []byte {
	if k < a.reasoning {
		return a.thinking
	}
	return a.opening
}

// appendText appends the text of a part.
func (a *answer) appendText(b []byte, p part) []byte { return a.appendWords(b, p.from, p.upTo) }

// usage holds the number of prompt tokens and of cached tokens among them.
type usage struct{ prompt, cached int }

// appendMember appends a member with a number.
func appendMember(b []byte, name string, value int) []byte {
	b = append(b, name...)
	return strconv.AppendInt(b, int64(value), 10)
}

// openEvent appends the start of an event with a name.
func openEvent(b []byte, name string) []byte {
	b = append(b, "event: "...)
	b = append(b, name...)
	b = append(b, "\ndata: {\"type\":\""...)
	b = append(b, name...)
	return append(b, '"')
}

// closeEvent appends the end of an event.
func (a *answer) closeEvent(b []byte, stamp int64) []byte {
	if a.stamped {
		b = append(b, `,"written_ns":`...)
		b = strconv.AppendInt(b, stamp, 10)
	}
	return append(b, "}\n\n"...)
}

// streamDone ends the streams of most APIs.
const streamDone = "data: [DONE]\n\n"
