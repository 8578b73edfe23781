package server

import (
	"bytes"
	"math"

	"moontide/trace/jsonscan"
)

// cutMark replaces an array of token ids cut out of a body. It is not a valid
// prompt, so a body that contains it is always rejected.
var cutMark = []byte(`[-1]`)

// cutTokenIDs cuts the member with a key out of a body if it is an
// array of token ids: the JSON library takes 20 times as long to scan it, and a
// long prompt is nearly all of its body. Within a JSON string the key's quotes
// would be escaped, so any match is a key. The caller must check that rest is JSON
// and that ids is the member and not nested within it.
func cutTokenIDs(body []byte, name string) (rest []byte, ids raw, ok bool) {
	key := bytes.Index(body, []byte(`"`+name+`"`))
	if key < 0 {
		return nil, nil, false
	}
	c := jsonscan.New(body[key:])
	if c.Key(); c.Peek() != '[' {
		return nil, nil, false
	}
	start := key + bytes.IndexByte(body[key:], '[')
	length := bytes.IndexByte(body[start:], ']')
	if length < 0 {
		return nil, nil, false
	}
	first := bytes.TrimLeft(body[start+1:start+length], " \t\r\n")
	if len(first) == 0 || first[0] < '0' || first[0] > '9' {
		return nil, nil, false
	}
	end := start + length + 1
	rest = make([]byte, 0, len(body)-length+len(cutMark))
	rest = append(append(append(rest, body[:start]...), cutMark...), body[end:]...)
	return rest, raw(body[start:end]), true
}

// readTokenIDs adds the ids of an array to a prompt without decoding the array,
// to save memory.
func (p parameter) readTokenIDs(to tokens) *apiError {
	c := jsonscan.New(p.value)
	for more := c.Open('['); more; {
		id := c.Int(math.MaxUint32)
		if more = c.More(']'); !c.Failed() {
			to.AddToken(uint64(id))
		}
	}
	if !c.Done() {
		return badRequest(p.name, "%s[%d] is not a token id, an integer from 0 to %d", p.name, to.Len(), uint32(math.MaxUint32))
	}
	return nil
}
