package server

import "strconv"

// response is a response to a client, written in the forms of its API.
type response struct {
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

	// What the next event, or the whole response, is about.
	usage      usage
	part       part
	bound      form  // of the tokens of the part, but the last one of the response
	counted    form  // the usage after each token
	from, upTo int   // tokens
	stamp      int64 // see Server.stampAt
	sequence   int   // events so far, if they are counted
	failure    *apiError
}

// usage holds the number of prompt tokens and of cached tokens among them.
type usage struct{ prompt, cached int }

// part is a part of a response: its reasoning or its visible text.
type part struct {
	reasoning  bool
	index      int // in the response
	from, upTo int // tokens
}

// partOf returns the part that token k belongs to.
func (r *response) partOf(k int) part {
	switch {
	case k < r.reasoning:
		return part{reasoning: true, upTo: r.reasoning}
	case r.reasoning > 0:
		return part{index: 1, from: r.reasoning, upTo: r.tokens}
	}
	return part{upTo: r.tokens}
}

// reasoned returns the number of tokens of reasoning so far.
func (r *response) reasoned() int { return min(r.upTo, r.reasoning) }

// forms returns the forms of the part that the response is at.
func (r *response) forms() *partForms {
	if r.part.reasoning {
		return &r.api.reasoning
	}
	return &r.api.text
}

// finish returns why the response ended, or that it has not.
func (r *response) finish() form {
	switch {
	case r.upTo < r.tokens:
		return r.api.running
	case r.full:
		return r.api.length
	}
	return r.api.stop
}

// appendIDs appends the ids of the tokens from..upTo, separated by commas.
func (r *response) appendIDs(b []byte) []byte {
	for k := r.from; k < r.upTo; k++ {
		if k > r.from {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, r.wording.token(k), 10)
	}
	return b
}

// appendToken appends the events of token k, including those that open the response or a
// part.
func (r *response) appendToken(b []byte, k int) []byte {
	if k == r.part.upTo {
		b = r.openPart(b, k)
	}
	r.from, r.upTo = k, k+1
	if r.upTo == r.tokens {
		return r.forms().token.append(b, r)
	}
	f := r.bound
	if !f[0].word {
		return f.append(b, r)
	}
	b = append(append(b, f[0].text...), r.word(k)...) // a call of the field takes longer
	if len(f) == 2 {
		return append(b, f[1].text...)
	}
	return f[1:].append(b, r)
}

// openPart appends the events before token k, the first one of a part.
func (r *response) openPart(b []byte, k int) []byte {
	if k == 0 {
		if r.continuousUsage {
			r.counted = r.api.usage.bind(r)
		}
		b = r.api.begun.append(b, r)
	} else {
		b = r.closePart(b)
	}
	r.part = r.partOf(k)
	r.bound = r.forms().token.bind(r)
	return r.forms().opened.append(b, r)
}

// closePart appends the events after the last token of a part.
func (r *response) closePart(b []byte) []byte {
	r.from, r.upTo = r.part.from, r.part.upTo
	return r.forms().closed.append(b, r)
}

// appendEnd appends the end of the stream, after the last token.
func (r *response) appendEnd(b []byte) []byte {
	b = r.closePart(b)
	r.from, r.upTo = 0, r.tokens
	if r.includeUsage {
		b = r.api.usageEvent.append(b, r)
	}
	return r.api.ended.append(b, r)
}

// appendParts appends all parts of a response. There is no visible text if all tokens are
// reasoning.
func (r *response) appendParts(b []byte) []byte {
	for k := 0; k < r.tokens; k = r.upTo {
		if k > 0 {
			b = append(b, ',')
		}
		r.part = r.partOf(k)
		r.from, r.upTo = r.part.from, r.part.upTo
		b = r.forms().whole.append(b, r)
	}
	r.from, r.upTo = 0, r.tokens
	return b
}
