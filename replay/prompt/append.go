package prompt

import "slices"

// AppendTokens appends the prompt as p.Len() token ids.
func (p Prompt) AppendTokens(dst []uint32) []uint32 {
	dst = slices.Grow(dst, p.length)
	for r := range p.runs() {
		dst = p.alphabet.appendTokens(dst, r)
	}
	return dst
}

// AppendJSONTokens appends the prompt as a JSON array of its token ids,
// without white space: [1234,5678].
func (p Prompt) AppendJSONTokens(dst []byte) []byte {
	dst = append(dst, '[')
	if p.length == 0 {
		return append(dst, ']')
	}
	for r := range p.runs() {
		dst = p.alphabet.appendDecimals(dst, r)
	}
	dst[len(dst)-1] = ']' // over the last comma
	return dst
}

// AppendWords appends the prompt as p.Len() words with a space between each
// two. The text consists of a-z and spaces only, so that it needs no escaping
// in JSON. It neither starts nor ends with a space: chat templates strip the
// ends of a message, and some tokenizers add a space of their own before it.
func (p Prompt) AppendWords(dst []byte) []byte {
	if p.length == 0 {
		return dst
	}
	for r := range p.runs() {
		dst = appendWords(dst, r)
	}
	return dst[:len(dst)-1] // without the last space
}
