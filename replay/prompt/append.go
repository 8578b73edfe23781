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
		dst = p.words.appendWords(dst, r)
	}
	return dst[:len(dst)-1] // without the last space
}

// AppendText appends the prompt as text of p.Len() tokens as it stands in a
// JSON string: a passage of the source's Text, or words where it has none. Like
// words it neither starts nor ends with a space.
func (p Prompt) AppendText(dst []byte) []byte {
	if p.text == nil || p.length == 0 {
		return p.AppendWords(dst)
	}
	start := len(dst)
	for r := range p.runs() {
		if r.key == p.own { // it begins where the ids end, not with the prompt
			r.from -= uint64(len(p.ids) * p.blockSize)
		}
		dst = p.text.appendRun(dst, r)
	}
	return append(dst[:start], dst[start+1:]...) // without the first space
}
