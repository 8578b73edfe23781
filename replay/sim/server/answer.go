package server

import "strconv"

// answer is an answer to a client, written in the forms of its API.
type answer struct {
	api     *api
	id      string // without the API's prefix
	created int64  // Unix time in seconds
	model   string // quoted
	wording
	tokens    int  // generated
	full      bool // as long as asked for
	reasoning int  // number of tokens of reasoning, before the visible text
	options
	stamped bool // each event has the time of its writing

	// What the next event, or the whole answer, is about.
	usage      usage
	part       part
	bound      form  // of the tokens of the part, but the last one of the answer
	counted    form  // the usage after each token
	from, upTo int   // tokens
	stamp      int64 // see Server.stampAt
	sequence   int   // events so far, if they are counted
	failure    *apiError
}

// usage holds the number of prompt tokens and of cached tokens among them.
type usage struct{ prompt, cached int }

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

// forms returns the forms of the part that the answer is at.
func (a *answer) forms() *partForms {
	if a.part.reasoning {
		return &a.api.reasoning
	}
	return &a.api.text
}

// finish returns why the answer ended, or that it has not.
func (a *answer) finish() form {
	switch {
	case a.upTo < a.tokens:
		return a.api.running
	case a.full:
		return a.api.length
	}
	return a.api.stop
}

// appendIDs appends the ids of the tokens from..upTo, separated by commas.
func (a *answer) appendIDs(b []byte) []byte {
	for k := a.from; k < a.upTo; k++ {
		if k > a.from {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, a.wording.token(k), 10)
	}
	return b
}

// appendToken appends the events of token k, including those that open the answer or a
// part.
func (a *answer) appendToken(b []byte, k int) []byte {
	if k == a.part.upTo {
		b = a.openPart(b, k)
	}
	a.from, a.upTo = k, k+1
	if a.upTo == a.tokens {
		return a.forms().token.append(b, a)
	}
	f := a.bound
	if !f[0].word {
		return f.append(b, a)
	}
	b = append(append(b, f[0].text...), a.word(k)...) // a call of the field takes longer
	if len(f) == 2 {
		return append(b, f[1].text...)
	}
	return f[1:].append(b, a)
}

// openPart appends the events before token k, the first one of a part.
func (a *answer) openPart(b []byte, k int) []byte {
	if k == 0 {
		if a.continuousUsage {
			a.counted = a.api.usage.bind(a)
		}
		b = a.api.begun.append(b, a)
	} else {
		b = a.closePart(b)
	}
	a.part = a.partOf(k)
	a.bound = a.forms().token.bind(a)
	return a.forms().opened.append(b, a)
}

// closePart appends the events after the last token of a part.
func (a *answer) closePart(b []byte) []byte {
	a.from, a.upTo = a.part.from, a.part.upTo
	return a.forms().closed.append(b, a)
}

// appendEnd appends the end of the stream, after the last token.
func (a *answer) appendEnd(b []byte) []byte {
	b = a.closePart(b)
	a.from, a.upTo = 0, a.tokens
	if a.includeUsage {
		b = a.api.usageEvent.append(b, a)
	}
	return a.api.ended.append(b, a)
}

// appendParts appends all parts of an answer. There is no visible text if all tokens are
// reasoning.
func (a *answer) appendParts(b []byte) []byte {
	for k := 0; k < a.tokens; k = a.upTo {
		if k > 0 {
			b = append(b, ',')
		}
		a.part = a.partOf(k)
		a.from, a.upTo = a.part.from, a.part.upTo
		b = a.forms().whole.append(b, a)
	}
	a.from, a.upTo = 0, a.tokens
	return b
}
